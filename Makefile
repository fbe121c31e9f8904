# What to type. Each target installs what it lacks (as root or through sudo) and may be run again.

# Where rustup puts cargo, should scripts/install.sh have to install it.
export PATH := $(HOME)/.cargo/bin:$(PATH)

EXPERIMENTS ?= $(patsubst experiments/%.toml,%,$(wildcard experiments/*.toml))

.PHONY: help run test quick fmt bench more-bench experiments judge fixtures fuzz clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

run: ## build headwater, serve the built-in film and print where to watch it
	@scripts/install.sh run
	@scripts/players.sh
	cargo build --release --locked
	@exec target/release/headwater serve

test: ## everything that can be judged here: style, tests, players, licences, short fuzzing
	@scripts/test.sh

quick: ## the loop while writing: all Rust tests, nothing installed, no browser
	cargo test --workspace --locked

judge: ## only the judges that are not ours: parsers, reference packager, players
	@scripts/install.sh test
	@scripts/players.sh
	cargo build --locked
	@scripts/judge.sh

fixtures: ## the small media that tests serve
	@fixtures/make.sh

fuzz: ## each fuzz target for FUZZ_SECONDS (default 60)
	@scripts/fuzz.sh $(or $(FUZZ_SECONDS),60)

fmt: ## format the Rust code
	cargo fmt --all

bench: ## what speed is asked of us, row by row, beside others on this machine; in under 15 minutes
	@scripts/install.sh bench
	cargo build --release --locked
	cargo build --release --locked -p media --example hot
	@python3 bench/table.py

more-bench: ## what else is measured: memory, storage, remote films, players, edge and load in depth
	@scripts/install.sh bench
	@scripts/storage.sh
	cargo build --release --locked
	@short=; for part in run edge memory storage remote load viewers players; do \
		printf '\n== %s ==\n' $$part; python3 bench/$$part.py || short="$$short $$part"; done; \
	cargo run --release --locked -p lab --example accuracy || short="$$short accuracy"; \
	[ -z "$$short" ] || { echo "falls short of what is asked:$$short"; exit 1; }

experiments: ## the source documents' experiments, each in a few minutes; reports go to docs/results
	@scripts/install.sh test
	@scripts/players.sh
	@scripts/baselines.sh
	cargo build --release --locked -p headwater -p baselines
	@scripts/modules.sh
	@scripts/experiments.sh $(EXPERIMENTS:%=experiments/%.toml)

clean: ## forget all that was built
	cargo clean
