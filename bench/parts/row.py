"""A row of the table, and its calculation from rounds."""

import dataclasses
import statistics
import sys

import run

GB, REQUESTS, MS, SECONDS, MIB = "GB", "requests", "ms", "CPU-s a second", "MiB"
CLIENTS = {"wrk": run.wrk, "discard": run.discard}


@dataclasses.dataclass
class Row:
    """Figures of Headwater and of the reference server, one per round."""

    work: str
    reference: str
    # Target ratio; 0 if the row is only reported.
    target: float
    ours: list = dataclasses.field(default_factory=list)
    theirs: list = dataclasses.field(default_factory=list)
    unit: str = REQUESTS
    # True if lower figures are better.
    less: bool = False
    # The reason why the row was not measured.
    why: str = ""
    rounds: list = dataclasses.field(default_factory=list)

    def ratios(self):
        pairs = [(b, a) if self.less else (a, b) for a, b in zip(self.ours, self.theirs, strict=True)]
        return [max(a, 1e-9) / max(b, 1e-9) for a, b in pairs]

    def show(self, values):
        middle = statistics.median(values)
        form = {GB: "{:.2f} GB", REQUESTS: "{:,.0f} requests", MS: "{:.2f} ms", SECONDS: "{:.3f} CPU-s per s",
                MIB: "{:.0f} MiB"}[self.unit]  # fmt: skip
        return form.format(middle)

    def show_target(self):
        return f"{self.target:g} ×" if self.target else "–"

    def raw(self):
        return {"unit": self.unit, "ours": self.ours, "theirs": self.theirs, "rounds": self.rounds, "why": self.why}


def missing(work, why, reference="", target=0):
    return Row(work, reference, target, why=str(why).strip().replace("\n", " ")[:200])


def interleave(args, kinds, measure):
    """Calls `measure(kind, server)` in interleaved rounds. Returns {kind: {server: [figures]}}.

    `kinds` is {kind: [server, …]}. The order of servers rotates by one each round."""
    found = {kind: {server: [] for server in servers} for kind, servers in kinds.items()}
    for number in range(args.rounds):
        for kind, servers in kinds.items():
            turn = number % len(servers)
            for server in servers[turn:] + servers[:turn]:
                found[kind][server].append(measure(kind, server))
        print(f"\rround {number + 1} of {args.rounds}", end="", file=sys.stderr)
    print(file=sys.stderr)
    return found


def per_cpu(figures, unit):
    """Returns GB or requests per CPU-second of the server."""
    done = (lambda f: f["bytes"] / 1e9) if unit == GB else (lambda f: f["requests"])
    return [done(f) / max(f["cpu_s"], 1 / run.TICKS) for f in figures]


def row(work, reference, target, unit, ours, theirs):
    """Makes a row from two lists of rounds."""
    rounds = [{"ours": a, "theirs": b} for a, b in zip(ours, theirs, strict=True)]
    return Row(work, reference, target, per_cpu(ours, unit), per_cpu(theirs, unit), unit, rounds=rounds)
