# Commands for developing Headwater. Each can be repeated, and installs what it needs (as root or through sudo). However,
# quick, fixtures, fuzz, fmt, faults and soak need what `make test` installs.

# rustup installs cargo here, if scripts/install.sh has to install it.
export PATH := $(HOME)/.cargo/bin:$(PATH)

PREFIX ?= $(HOME)/.cargo
EXPERIMENTS ?= $(patsubst experiments/%.toml,%,$(wildcard experiments/*.toml))
# `make run` leaves port 8080 to the servers of the README's examples.
RUN_LISTEN ?= 127.0.0.1:8088

.PHONY: help run install dist test quick fmt faults restarts soak fleet bench more-bench experiments judge fixtures fuzz docs clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

run: ## build quickly, serve the built-in film and print where to watch it (RUN_LISTEN)
	@scripts/install.sh run
	@scripts/players.sh & cargo fetch --locked --quiet; wait
	cargo build --profile fast-build --locked
	@exec target/fast-build/headwater serve --listen $(RUN_LISTEN)

install: ## build the optimised binary and install it into ~/.cargo/bin (or PREFIX/bin)
	@scripts/install.sh run
	@scripts/players.sh
	cargo build --release --locked
	@install -D target/release/headwater $(PREFIX)/bin/headwater && echo "installed $(PREFIX)/bin/headwater"

dist: ## build a release's packages in target/dist: .tar.gz, .deb, wheel, image
	@scripts/install.sh dist
	@scripts/players.sh
	@scripts/packages/build.sh

test: ## run every check: style, tests, players, packages, licences
	@scripts/test.sh

quick: ## run the unit tests and the rules of the code; install the commit-message check
	@scripts/hooks.sh
	@scripts/rust_tests.sh --quick

judge: ## run only the checks by other programs: parsers, the reference packager, players
	@scripts/install.sh test
	@scripts/players.sh
	cargo build --locked
	@scripts/judge.sh

fixtures: ## make the short films that the tests serve
	@fixtures/make.sh

fuzz: ## run each fuzz target for FUZZ_SECONDS (default 60)
	@scripts/fuzz.sh $(or $(FUZZ_SECONDS),60)

fmt: ## format the Rust code
	cargo fmt --all

faults: ## break the edge at random for FAULT_SECONDS (default 60), and find every planted bug
	@scripts/faults.sh

restarts: ## restart both servers 20 times at 80 % of what saturates them (as root); no request may be lost
	@scripts/install.sh run
	@scripts/players.sh
	cargo test --release --locked --test e2e open_loop -- --ignored --nocapture --test-threads=1

soak: ## run both servers under mixed load for SOAK_SECONDS (default 1800); memory must stay flat
	@scripts/install.sh run
	cargo build --release --locked
	@python3 bench/soak.py

fleet: ## run HAProxy, three edges and three origins under viewers; kill, upgrade and scale them
	@scripts/install.sh test
	@scripts/storage.sh
	@scripts/nats.sh
	@fixtures/make.sh
	cargo build --release --locked
	@python3 bench/fleet --save

bench: ## compare the speed with other servers on this machine, in about 30 minutes
	@scripts/install.sh bench
	cargo build --release --locked
	cargo build --release --locked -p media --example hot
	@python3 bench/table.py

more-bench: ## measure more: memory, storage, remote films, players, edge and load in depth
	@scripts/install.sh bench
	@scripts/storage.sh
	cargo build --release --locked
	@missed=; for part in run edge memory storage remote load viewers players; do \
		printf '\n== %s ==\n' $$part; python3 bench/$$part.py || missed="$$missed $$part"; done; \
	cargo run --release --locked -p lab --example accuracy || missed="$$missed accuracy"; \
	[ -z "$$missed" ] || { echo "missed a target:$$missed"; exit 1; }

experiments: ## repeat the source documents' experiments; reports go to docs/results
	@scripts/install.sh test
	@scripts/players.sh
	@scripts/baselines.sh
	cargo build --release --locked -p headwater -p baselines
	@scripts/modules.sh
	@scripts/experiments.sh $(EXPERIMENTS:%=experiments/%.toml)

docs: ## build the documentation site into target/book (mdBook)
	@scripts/install.sh run
	@scripts/docs.sh

clean: ## delete everything that was built
	cargo clean
