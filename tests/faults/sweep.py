#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demonstration's commands with calls that fail (faults.c), and what must hold of every one:

- no signal, no hang, and an exit status of 0 or 1;
- interrupted and short calls change nothing;
- status 0 only if everything is there that an undisturbed run writes, and says; only results that a command keeps in a
  store next to its answer may be missing, and then it says so;
- status 1 with a sentence, which names a file where a file's call failed;
- under an output's name lies what was there before or the whole new one; of a store `verify` says that it is sound;
- the same command then finishes, with what an undisturbed run writes, and no file besides.

The same of commands that write and are killed at some moments: of a signal, then.

sweep.py --shears PROGRAM --faults faults.so --model FOLDER --text FILE [--sample N | --most N] [--kills N]
         [--only NAME,...] [--plain]
TAP on stdout: one line for each command. --sample N: so many faults in all, chosen with a seed; else all calls of each
kind, or --most N of them where there are more (the first ones, the last ones, the rest spread). --kills N: so many
moments of each command. --plain: every command undisturbed, twice."""
import argparse, collections, concurrent.futures, hashlib, itertools, mmap, os, random, re, shutil, signal, struct
import subprocess, sys, tempfile, time

KINDS = {"write-short": "write", "write-eintr": "write", "write-enospc": "write", "write-eio": "write",
         "read-short": "read", "read-eintr": "read", "read-eio": "read", "mmap": "mmap", "sync": "sync",
         "truncate": "truncate", "open": "open", "rename": "rename", "alloc": "alloc"}
HARMLESS = {"write-short", "write-eintr", "read-short", "read-eintr"}
STAYS = {"write-enospc", "write-eio", "sync"}           # a disk that is full or broken stays so
SPARED = "libdnnl,libstdc++,libopenblas,libgomp"        # they crash or end by themselves, which no caller can mend
AGAIN = (".shears-new", ".part")

# name, arguments, what lies in the folder before, files that it writes; a store in both is added to
Command = collections.namedtuple("Command", "name args has writes keeps")
M = "--model ../in/model"
TEXT = M + " --text ../in/t.txt --length 40 --count 2"
COMMANDS = [Command(n, a.split(), h.split(), w.split(), k) for n, a, h, w, k in [
    ("trace", f"trace {TEXT} --db new.db --vectors k", "", "new.db", 0),
    ("trace-add", f"trace {M} --jsonl ../in/r.jsonl --length 40 --count 1 --db x.db --memory 1", "x.db", "x.db", 0),
    ("persistence", "persistence --db x.db", "x.db", "x.db", 1),
    ("replay", "replay --db x.db --policy h2o streaming --budget 0.3,0.6", "x.db", "x.db", 1),
    ("replay-dump", "replay --db x.db --policy h2o --budget 0.3 --dump-kept k.jsonl", "x.db", "x.db k.jsonl", 1),
    ("plan", "plan --db x.db --policy h2o --target-recall 0.9 --allocator greedy -o p.json", "x.db", "x.db p.json", 1),
    ("eval", f"eval {TEXT} --db x.db --policy h2o --budget 0.3", "x.db", "x.db", 0),
    ("eval-files", f"eval {TEXT} --policy h2o --budget 0.3 --logits l.npy --dump-kept k.jsonl", "", "l.npy k.jsonl", 0),
    ("eval-task", f"eval {M} --task lambada --data ../in/l.jsonl --policy h2o --budget 0.5 --items i.jsonl", "",
     "i.jsonl", 0),
    ("drift", f"drift {M} --db x.db --policy h2o --budget 0.3", "x.db", "x.db", 1),
    ("generate", f"generate {M} --prompt-file ../in/s.txt --max-tokens 8 --policy h2o --budget 24 --dump-kept k.jsonl "
     "--dump-every 16", "", "k.jsonl", 0),
    ("capacity", f"capacity {M} --gpu H100-SXM --length 512 --db kept.db", "kept.db", "", 0),
    ("simulate", f"simulate {M} --gpu H100-SXM --workload ../in/w.csv --budget 0.2 --plan p.json --log s.csv", "p.json",
     "s.csv", 0),
    ("simulate-db", f"simulate {M} --gpu H100-SXM --workload ../in/w.csv --budget 0.2,0.5 --db kept.db --log s.csv",
     "kept.db", "kept.db s.csv", 0),
    ("theory", "theory --db x.db --budget 0.2,0.5", "x.db", "x.db", 1),
    ("repetition", f"repetition {M} --text ../in/t.txt --length 40 --count 2 --max-tokens 8 --policy h2o --budget 12 "
     "--db x.db", "x.db", "x.db", 0),
    ("plot", "plot persistence --db x.db -o f.svg --data f.tsv", "x.db", "f.svg f.tsv", 0),
    ("plot-script", "plot budget-curve --db kept.db -o f.gp --script", "kept.db", "f.gp", 0),
    ("report", f"report --db kept.db --plan p.json {M} -o r.html", "kept.db p.json", "r.html", 0),
    ("merge", "merge --db m.db x.db.shard-1-of-2 x.db.shard-2-of-2", "x.db.shard-1-of-2 x.db.shard-2-of-2", "m.db", 0),
    ("import", "import --db i.db --attention ../in/a.npy --tokens ../in/ids.jsonl --name golden", "", "i.db", 0),
    ("export", "export --db x.db --sequence 0 --layer 1 --head 1 -o e.tsv", "x.db", "e.tsv", 0),
    ("export-npy", "export --db x.db --sequence 1 --layer 0 --head 2 -o e.npy", "x.db", "e.npy", 0),
    ("plan-again", "plan --plan p.json --db x.db -o q.json", "x.db p.json", "q.json", 0),
    ("info", "info x.db --hash", "x.db", "", 0),
    ("verify", "verify --db x.db", "x.db", "", 0),
    ("help", "help --man .", "", "shears.1 shears-trace.1", 0),
]]


def sha(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


class Sweep:
    def __init__(self, a):
        self.a = a
        self.top = os.path.realpath(tempfile.mkdtemp(prefix="faults-", dir=a.work))
        self.ready = os.path.join(self.top, "ready")
        self.serial = itertools.count()
        self.hits = collections.Counter()
        self.reference, self.took = {}, {}

    def path(self, *parts):
        return os.path.join(self.top, *parts)

    # ---- running ----

    def run(self, cwd, args, fault=None):
        """Status, stdout, stderr, (calls, failures)."""
        env = dict(os.environ, LC_ALL="C")
        env.pop("LD_PRELOAD", None)
        args = [self.a.shears, *args] + ([] if args[0] in ("info", "help") else ["--threads", "1", "-q"])
        moment = fault[1] if fault and fault[0] == "kill" else None
        fault = None if moment is not None else fault
        counter = os.path.join(self.top, f"count-{next(self.serial)}")
        if fault:
            kind, at, how = fault
            with open(counter, "wb") as f:
                f.write(bytes(16))
            env.update(LD_PRELOAD=self.a.faults, SH_FAULT=kind, SH_FAULT_AT=str(at), SH_FAULT_HOW=how,
                       SH_FAULT_UNDER=cwd if kind.startswith("write") else self.top + "/",
                       SH_FAULT_PROGRAM=os.path.basename(self.a.shears), SH_FAULT_COUNT=counter,
                       SH_FAULT_SPARE=SPARED)
        out_path = counter + "-out"
        if fault and fault[0].startswith("write"):
            out_path = os.path.join(cwd, "stdout")      # its calls fail, too
        with open(out_path, "wb") as out:
            p = subprocess.Popen(args, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE)
            try:
                if moment is not None:
                    time.sleep(moment)
                    p.kill()
                said = p.communicate(timeout=120)[1].decode("utf-8", "replace")
            except subprocess.TimeoutExpired:
                p.kill()
                p.communicate()
                return "hung", "", "", (0, 1)
        with open(out_path, "rb") as f:
            out = f.read().decode("utf-8", "replace")
        os.unlink(out_path)
        n = (0, 0)
        if fault:
            with open(counter, "rb") as f:
                n = struct.unpack("QQ", f.read())
            os.unlink(counter)
        return p.returncode, out, said, n

    def folder(self, c):
        cwd = self.path(f"{c.name}-{next(self.serial)}")
        os.mkdir(cwd)
        for name in c.has:
            shutil.copy(os.path.join(self.ready, name), cwd)
        return cwd

    def must(self, cwd, args):
        status, out, said, _ = self.run(cwd, args)
        if status:
            sys.exit(f"Bail out! {' '.join(args)}: status {status}: {said}")
        return out

    # ---- what is there ----

    def content(self, cwd, name):
        """What a file says, without what differs from run to run; None: not there."""
        path = os.path.join(cwd, name)
        if not os.path.exists(path):
            return None
        if name.endswith(".db"):
            return self.must(cwd, ["info", name, "--hash"])
        if name.endswith((".html", ".svg")):
            with open(path, encoding="utf-8") as f:
                text = f.read()
            text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?", "DATE", text)
            return text if text.rstrip().endswith("</html>" if name.endswith(".html") else "</svg>") else "cut"
        return sha(path)

    def prepare(self):
        a = self.a
        os.makedirs(self.path("in"))
        os.mkdir(self.ready)
        shutil.copytree(a.model, self.path("in", "model"))
        with open(a.text, encoding="utf-8") as f:
            text = f.read(6000)
        lines = [x for x in text.split("\n") if x.strip()]
        files = {"t.txt": text[:1500], "s.txt": text[:300],
                 "r.jsonl": "".join('{"text": "%s"}\n' % re.sub(r'[^A-Za-z ,.]', " ", x) for x in lines[:3]),
                 "l.jsonl": "".join('{"text": "%s"}\n' % re.sub(r"[^A-Za-z ]", "", x).strip() for x in lines[:4]),
                 "w.csv": "arrival_s,prompt_tokens,output_tokens\n" +
                          "".join(f"{i / 10},{100 + i},{10 + i % 7}\n" for i in range(30))}
        n, keys = 2, 6                                  # heads, tokens
        rows = [[[1 / (q + 1) if k <= q else 0.0 for k in range(keys)] for q in range(keys)] for _ in range(n)]
        flat = [x for head in rows for row in head for x in row]
        header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d, %d), }" % (n, keys, keys)
        header = header.ljust((10 + len(header) + 1 + 63) // 64 * 64 - 11) + "\n"
        with open(self.path("in", "a.npy"), "wb") as f:
            f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                    struct.pack(f"<{len(flat)}f", *flat))
        files["ids.jsonl"] = str(list(range(1, keys + 1))) + "\n"
        for name, said in files.items():
            with open(self.path("in", name), "w", encoding="utf-8") as f:
                f.write(said)
        trace = ["trace", *TEXT.split(), "--vectors", "k"]
        self.must(self.ready, [*trace, "--db", "x.db"])
        for i in "12":
            self.must(self.ready, [*trace, "--db", "x.db", "--shard", i + "/2"])
        shutil.copy(os.path.join(self.ready, "x.db"), os.path.join(self.ready, "kept.db"))
        by_name = {c.name: c for c in COMMANDS}
        for name in "persistence", "replay", "plan", "eval":
            self.must(self.ready, [w.replace("x.db", "kept.db") for w in by_name[name].args])

    def learn(self, c):
        """What the command writes and says: lines that two runs do not share are no part of it."""
        seen = []
        for _ in range(2):
            cwd = self.folder(c)
            began = time.monotonic()
            out = self.must(cwd, c.args)
            self.took[c.name] = time.monotonic() - began
            seen.append((out.splitlines(), {n: self.content(cwd, n) for n in c.writes}, sorted(os.listdir(cwd))))
            before = {n: self.content(cwd, n) for n in c.has}
            shutil.rmtree(cwd)
        (one, files, there), (two, again, _) = seen
        if files != again:
            sys.exit(f"Bail out! {c.name}: two undisturbed runs write different files: "
                     f"{[n for n in files if files[n] != again[n]]}")
        stable = [a if i < len(two) and a == two[i] and not re.search(r"second|/s|\bs\b|rate|speed", a) else None
                  for i, a in enumerate(one)]
        cwd = self.folder(c)
        before = {n: self.content(cwd, n) for n in c.has}
        shutil.rmtree(cwd)
        self.reference[c.name] = (stable, files, there, before)

    def says_other(self, c, out):
        stable, got = self.reference[c.name][0], out.splitlines()
        if len(got) != len(stable):
            return f"{len(got)} lines for {len(stable)}"
        return next((f"{b!r} for {a!r}" for a, b in zip(stable, got) if a is not None and a != b), None)

    # ---- one fault ----

    def names_a_file(self, c, said):
        names = {"standard output", "temporary file", "shears.1", "shears-", *os.listdir(self.path("in")),
                 *os.listdir(self.path("in", "model")), *c.has, *c.writes} - {"model"}
        return any(n in said for n in names)

    def faults(self, c, fault):
        """What is wrong with the command under this fault: lines."""
        kind, at, how = fault
        stable, files, there, before = self.reference[c.name]
        cwd, wrong = self.folder(c), []
        status, out, said, (_, failures) = self.run(cwd, c.args, fault)
        if failures:
            self.hits[kind] += 1
        if kind == "kill":
            self.hits[kind] += status == -signal.SIGKILL
        if status not in (0, 1) and not (kind == "kill" and status == -signal.SIGKILL):
            name = f"signal {signal.Signals(-status).name}" if isinstance(status, int) and status < 0 else status
            wrong.append(f"ended with {name}; it said: {said.strip()[-300:]}")
        if kind in HARMLESS and status == 1:
            wrong.append(f"failed: {said.strip()[-300:]}")
        if status == 1 and not re.search(r"^shears: \S", said, re.M):
            wrong.append(f"failed without a sentence: {said.strip()[-300:]!r}")
        elif status == 1 and kind != "alloc" and not self.names_a_file(c, said):
            wrong.append(f"names no file: {said.strip()[-300:]}")
        other = self.says_other(c, out) if status == 0 else None
        if other:
            wrong.append(f"status 0, but stdout says {other}; stderr: {said.strip()[-300:]}")
        left = [n for n in os.listdir(cwd) if n.endswith(AGAIN)]
        if left and kind not in ("alloc", "kill"):
            wrong.append(f"left behind: {left}")
        not_kept = c.keeps and "not stored" in said
        for n, whole in files.items():
            if n.endswith(".db"):
                wrong += self.store_faults(cwd, n, whole, status == 0 and not not_kept)
                continue
            got = self.content(cwd, n)
            if got != whole and (status == 0 or got not in (None, before.get(n))):
                wrong.append(f"status {status}, but {n} is " + ("not there" if got is None else "half written"))
        again, out, said, _ = self.run(cwd, c.args)
        if again:
            wrong.append(f"then the same command fails: status {again}: {said.strip()[-300:]}")
        else:
            wrong += [f"then the same command writes another {n}" for n, whole in files.items()
                      if self.content(cwd, n) != whole]
            extra = [n for n in sorted(os.listdir(cwd)) if n not in there]
            if extra:
                wrong.append(f"then there is also {extra}")
        shutil.rmtree(cwd)
        return wrong

    def store_faults(self, cwd, name, whole, is_done):
        path = os.path.join(cwd, name)
        if not os.path.exists(path):
            return [f"status 0, but {name} is not there"] if is_done else []
        status, out, said, _ = self.run(cwd, ["verify", "--db", name])
        if status and not (not is_done and "empty" in said):
            return [f"verify of {name}: {said.strip()[-300:]}"]
        if is_done and self.content(cwd, name) != whole:
            return [f"status 0, but {name} has not what it should have"]
        return []

    # ---- which faults ----

    def calls(self, c, kind):
        cwd = self.folder(c)
        n = self.run(cwd, c.args, (kind, 0, "once"))[3][0]
        shutil.rmtree(cwd)
        return n

    def all_faults(self, c):
        counted = {}
        for kind, call in KINDS.items():
            if call not in counted:
                counted[call] = self.calls(c, kind)
            n, most = counted[call], self.a.most
            numbers = list(range(1, n + 1))
            if n > most:
                ends = most // 4
                middle = random.Random(f"{c.name} {kind}").sample(numbers[ends:-ends], most - 2 * ends)
                numbers = numbers[:ends] + sorted(middle) + numbers[-ends:]
            for at in numbers:
                yield kind, at, "once"
                if kind in STAYS:
                    yield kind, at, "on"
            if kind in HARMLESS and n:
                yield kind, 2, "every"
                yield kind, 3, "every"

    def sampled(self, commands):
        choose, chosen = random.Random(self.a.seed), collections.defaultdict(list)
        far = {"write": 60, "read": 40, "mmap": 3, "sync": 8, "truncate": 2, "open": 12, "rename": 1, "alloc": 4000}
        for i in range(self.a.sample):
            kind = list(KINDS)[i % len(KINDS)]
            at = int(far[KINDS[kind]] ** choose.random() + 0.5)
            how = "every" if kind in HARMLESS else "on" if kind in STAYS and choose.random() < 0.5 else "once"
            at = max(at % 5, 2) if how == "every" else at
            chosen[choose.choice(commands).name].append((kind, at, how))
        return chosen

    def plain(self, commands):
        for i, c in enumerate(commands):
            self.learn(c)
            print(f"ok {i + 1} - {c.name}: twice the same")
            sys.stdout.flush()

    def sweep(self, commands):
        chosen = self.sampled(commands) if self.a.sample >= 0 else None
        with concurrent.futures.ThreadPoolExecutor(self.a.jobs) as pool:
            for i, c in enumerate(commands):
                kills = self.a.kills if c.writes else 0
                if chosen is None or chosen[c.name] or kills:
                    self.learn(c)
                tried = chosen[c.name] if chosen is not None else list(self.all_faults(c))
                choose = random.Random(f"{self.a.seed} {c.name}")
                tried += [("kill", round(choose.random() * self.took[c.name], 4), "once") for _ in range(kills)]
                found = list(pool.map(lambda f, c=c: self.faults(c, f), tried))
                bad = [(f, w) for f, w in zip(tried, found) if w]
                print(f"{'not ok' if bad else 'ok'} {i + 1} - {c.name}: {len(tried)} faults")
                for f, w in bad[:self.a.show]:
                    print(f"# {' '.join(map(str, f))}:")
                    for line in w:
                        print("#   " + line.replace("\n", "\n#   "))
                if len(bad) > self.a.show:
                    print(f"# … {len(bad)} in all")
                sys.stdout.flush()
        print("# what was met: " + ", ".join(f"{k} {n}" for k, n in sorted(self.hits.items())))


def main():
    p = argparse.ArgumentParser()
    for name in "shears", "faults", "model", "text":
        p.add_argument("--" + name, required=True, type=os.path.realpath)
    p.add_argument("--work", default=None)
    p.add_argument("--sample", type=int, default=-1)
    p.add_argument("--kills", type=int, default=0)
    p.add_argument("--most", type=int, default=40)
    p.add_argument("--seed", default="0")
    p.add_argument("--plain", action="store_true")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--show", type=int, default=6)
    p.add_argument("--only", default="")
    a = p.parse_args()
    s = Sweep(a)
    try:
        s.prepare()
        has_gnuplot = shutil.which("gnuplot")
        commands = [c for c in COMMANDS if (not a.only or c.name in a.only.split(",")) and
                    (has_gnuplot or c.name not in ("plot", "report"))]
        print(f"1..{len(commands)}")
        (s.plain if a.plain else s.sweep)(commands)
    finally:
        shutil.rmtree(s.top)


main()
