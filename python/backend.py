# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel (PEP 517), with nothing but Python and what the program's own build needs. The wheel holds libshears
and the shared libraries that it is linked with, other than those of C and C++, which every system with NumPy has.

SHEARS_BUILD: a folder where `configure` has run, whose library is taken; else the sources' folder if it has run there;
else the library is built in a temporary one."""
import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
LIBRARY = "libshears.so.0"
SYSTEM = re.compile(r"^(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv|libutil|libstdc\+\+|libgcc_s)[.]")


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode:
        sys.exit("%s: failed:\n%s" % (" ".join(command), done.stdout[-4000:]))
    return done.stdout


def project():
    """The table [project] of pyproject.toml: name, version, and so on; Python before 3.11 has no reader for it."""
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as f:
        text = f.read()
    value = lambda key: re.search(r'^%s = "(.*)"$' % key, text, re.M).group(1)
    extras = re.search(r"\[project.optional-dependencies\]\n(.*)", text, re.S).group(1)
    extras = re.findall(r'^(\w+) = \[(.*)\]$', extras, re.M)
    return value, [(name, re.findall(r'"([^"]+)"', packages)) for name, packages in extras]


def metadata():
    value, extras = project()
    lines = ["Metadata-Version: 2.1", "Name: " + value("name"), "Version: " + value("version"),
             "Summary: " + value("description"), "Requires-Python: " + value("requires-python"), "License: Apache-2.0",
             "Description-Content-Type: text/markdown", "Requires-Dist: numpy"]
    for extra, packages in extras:
        lines.append("Provides-Extra: " + extra)
        lines += ["Requires-Dist: %s; extra == '%s'" % (package, extra) for package in packages]
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as f:
        return "\n".join(lines) + "\n\n" + f.read()


def name_and_version():
    value, _ = project()
    return "%s-%s" % (value("name"), value("version"))


def tag():
    return "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")


def build_library(folder):
    """The library in `folder`, which looks for what it is linked with next to itself. Its path."""
    build = os.environ.get("SHEARS_BUILD") or (TOP if os.path.exists(os.path.join(TOP, "Makefile")) else None)
    if not build:
        build = os.path.join(folder, "build")
        os.makedirs(build)
        if not os.path.exists(os.path.join(TOP, "configure")):
            run("autoreconf", "-i", cwd=TOP)
        run(os.path.join(TOP, "configure"), cwd=build)
    jobs = "-j%d" % len(os.sched_getaffinity(0))
    clean = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    run("make", jobs, "libshears.o", cwd=build, env=clean)
    path = os.path.join(folder, LIBRARY)
    run("make", "lib_shared", "LIB_SHARED=" + path, "LIB_LDFLAGS=-s -Wl,-rpath,'$$ORIGIN',--disable-new-dtags", cwd=build,
        env=clean)
    return path


def make_example(folder, library):
    """A small store, recorded by the library from a tiny model of the tests."""
    path, tokens = os.path.join(folder, "example.db"), os.path.join(folder, "tokens.jsonl")
    model = os.path.join(TOP, "tests", "golden", "checkpoints", "opt")
    with open(os.path.join(model, "ref.json"), encoding="utf-8") as f, open(tokens, "w", encoding="utf-8") as to:
        to.writelines(json.dumps(one["tokens"]) + "\n" for one in json.load(f)["sequences"])
    code = "import shears, sys; shears.ask('trace', model=sys.argv[1], db=sys.argv[2], tokens=sys.argv[3], vectors='qkv')"
    run(sys.executable, "-c", code, model, path, tokens, cwd=HERE,
        env=dict(os.environ, SHEARS_LIBRARY=library, PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=HERE))
    return path


def needed(library):
    """The shared libraries that it is linked with, but for the system's."""
    lines = run("ldd", library).splitlines()
    found = [line.split() for line in lines if "=>" in line]
    missing = [words[0] for words in found if words[2] == "not"]
    if missing:
        sys.exit("%s: needs %s, which was not found" % (library, ", ".join(missing)))
    return [(words[0], words[2]) for words in found if not SYSTEM.match(words[0])]


class Wheel:
    def __init__(self, path):
        self.zip, self.record = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED), []

    def add(self, name, data, mode=0o644):
        info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
        info.external_attr, info.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append("%s,sha256=%s,%d" % (name, digest, len(data)))

    def add_file(self, name, path, mode=0o644):
        with open(path, "rb") as f:
            self.add(name, f.read(), mode)

    def end(self, info):
        self.record.append(info + "/RECORD,,")
        self.zip.writestr(info + "/RECORD", "\n".join(self.record) + "\n")
        self.zip.close()


def write_wheel(folder, put_content):
    name, info = "%s-%s.whl" % (name_and_version(), tag()), name_and_version() + ".dist-info"
    wheel = Wheel(os.path.join(folder, name))
    put_content(wheel)
    wheel.add(info + "/METADATA", metadata().encode())
    wheel.add(info + "/WHEEL", ("Wheel-Version: 1.0\nGenerator: shears\nRoot-Is-Purelib: false\nTag: %s\n" % tag()).encode())
    license = os.path.join(TOP, "LICENSE")
    if os.path.exists(license):
        wheel.add_file(info + "/LICENSE", license)
    wheel.end(info)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """The wheel's file name; called by pip."""
    def content(wheel):
        package = os.path.join(HERE, "shears")
        for name in sorted(os.listdir(package)):
            if name.endswith((".py", ".typed")):
                wheel.add_file("shears/" + name, os.path.join(package, name))
        with tempfile.TemporaryDirectory() as folder:
            library = build_library(folder)
            wheel.add_file("shears/example.db", make_example(folder, library))
            for name, path in [(LIBRARY, library)] + needed(library):
                wheel.add_file("shears/lib/" + name, path, 0o755)
    return write_wheel(wheel_directory, content)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """For pip install -e: the sources where they are, with the library of the folder that they were built in."""
    return write_wheel(wheel_directory, lambda wheel: wheel.add("shears.pth", (HERE + "\n").encode()))


def build_sdist(sdist_directory, config_settings=None):
    sys.exit("the package is built from the project's own tarball: make dist")


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    print(os.path.join(sys.argv[1], build_wheel(sys.argv[1])))
