"""Makes a release, and verifies one (`make release VERSION=…`, `make verify-release`).

`prepare VERSION` names the version in the program, the changelog and the chart, commits that and tags it.
`build FOLDER` builds what is released into an empty folder, with notes and checksums; `--sbom FILE` adds that.
`sign FOLDER --key KEY` signs the checksums with an SSH key.
`verify FOLDER --signers FILE` holds the signature and every file against them; `--rebuild` builds all of it again.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List, Optional, Sequence

import build_debian
import build_rpm
import python_distributions
from python_distributions import ROOT

INIT = "tuner/ceph_tuner/__init__.py"
CHANGELOG = "CHANGELOG.md"
CHART = "deploy/helm/ceph-tuner/Chart.yaml"
SUMS = "SHA256SUMS"
NAMESPACE = "ceph-tuner-release"
SIGNER = "release@ceph-tuner"
"""Who signs, by the name that the file of signers has for the key."""


def prepare(repository: Path, version: str) -> None:
    """Commit and tag a version; what of that was done is not done again."""
    # all that a build takes, whatever git is set to show
    if _git(repository, "status", "--porcelain", "--untracked-files=all"):
        _refuse("what is here is not committed: `git status`")
    named, tag = version_of(repository) == version, f"v{version}"
    if named and _git(repository, "tag", "--points-at", "HEAD", tag):
        return
    if _git(repository, "tag", "--list", tag):
        _refuse(f"the tag {tag} is at another commit: `git show {tag}`")
    if named and _git(repository, "log", "-1", "--format=%s").strip() == _subject(version):
        _tag(repository, version)
        return
    if not re.fullmatch(r"\d+\.\d+\.\d+", version) or _numbers(version) <= _numbers(version_of(repository)):
        _refuse(f"VERSION={version}: expected one such as 1.2.3, after {version_of(repository)}")
    day = time.strftime("%Y-%m-%d", time.gmtime())
    changelog = repository / CHANGELOG
    text = changelog.read_text(encoding="utf-8")
    if not section(text, "Unreleased").strip():
        _refuse(f"{CHANGELOG}: nothing under [Unreleased]")
    dated = text.replace("## [Unreleased]\n", f"## [Unreleased]\n\n## [{version}] - {day}\n", 1)
    changelog.write_text(dated, encoding="utf-8")
    init = repository / INIT
    chart = repository / CHART
    text = re.sub(r"^(version|appVersion): .*$", rf"\1: {version}", chart.read_text("utf-8"), flags=re.MULTILINE)
    chart.write_text(text, encoding="utf-8")
    init.write_text(init.read_text("utf-8").replace(f'"{version_of(repository)}"', f'"{version}"'), encoding="utf-8")
    _git(repository, "commit", "--quiet", "-m", _subject(version), INIT, CHANGELOG, CHART)
    _tag(repository, version)


def _subject(version: str) -> str:
    return f"Release {version}"


def _tag(repository: Path, version: str) -> None:
    _git(repository, "tag", "-a", f"v{version}", "-m", f"ceph-tuner {version}")


def build(repository: Path, folder: Path, sbom: Optional[Path] = None, whole: bool = True) -> None:
    """Build everything into a new folder. Not `whole`: without the program's packages, which take minutes."""
    if folder.exists() and any(folder.iterdir()):
        _refuse(f"{folder}: not empty")
    folder.mkdir(parents=True, exist_ok=True)
    version, seconds = version_of(repository), python_distributions.epoch(repository)
    sdist, _ = python_distributions.build(repository, folder)
    with tempfile.TemporaryDirectory() as wheels:
        if whole:
            _download(repository, Path(wheels))
        build_debian.build(sdist, folder, seconds, Path(wheels) if whole else None)
        build_rpm.build(sdist, folder, seconds, Path(wheels) if whole else None)
    if sbom is not None:
        shutil.copyfile(sbom, folder / f"ceph-tuner-{version}.cdx.json")
    (folder / "NOTES.md").write_text(notes(repository, version, folder), encoding="utf-8")
    (folder / SUMS).write_text("".join(f"{digest}  {name}\n" for name, digest in digests(folder).items()), "utf-8")


def sign(folder: Path, key: Path) -> None:
    """Sign the checksums, and so every file."""
    (folder / f"{SUMS}.sig").unlink(missing_ok=True)
    _run(["ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(folder / SUMS)], folder)


def verify(folder: Path, signers: Path) -> List[str]:
    """What is wrong with a release; nothing where it is whole and was signed by one of the signers."""
    check = ["ssh-keygen", "-Y", "verify", "-f", str(signers), "-I", SIGNER, "-n", NAMESPACE]
    signature, sums = folder / f"{SUMS}.sig", folder / SUMS
    if not signature.is_file() or not sums.is_file():
        return [f"{folder}: no {SUMS} with its signature"]
    # read once: what is compared is what was signed
    content = sums.read_bytes()
    done = subprocess.run([*check, "-s", str(signature)], input=content, capture_output=True, check=False)
    if done.returncode:
        return [f"{SUMS}: {done.stderr.decode(errors='replace').strip() or 'not signed by one of the signers'}"]
    lines = [line.split("  ", 1) for line in content.decode("utf-8").splitlines()]
    signed = {name: digest for digest, name in lines}
    return differences(signed, digests(folder))


def differences(signed: Dict[str, str], present: Dict[str, str]) -> List[str]:
    """Files that are missing, changed or not signed for."""
    faults = dict.fromkeys(signed.keys() - present.keys(), "missing")
    faults.update(dict.fromkeys(present.keys() - signed.keys(), "not signed for"))
    faults.update({name: "changed" for name in signed.keys() & present.keys() if signed[name] != present[name]})
    return [f"{name}: {fault}" for name, fault in sorted(faults.items())]


def rebuilt(folder: Path) -> List[str]:
    """What differs from what the tag of the release gives here."""
    names = {path.name for path in folder.iterdir()}
    (sdist,) = (name for name in names if name.startswith("ceph_tuner-") and name.endswith(".tar.gz"))
    version = sdist[len("ceph_tuner-") : -len(".tar.gz")]
    sbom = folder / f"ceph-tuner-{version}.cdx.json"
    with tempfile.TemporaryDirectory() as scratch:
        clone = Path(scratch) / "clone"
        # --branch would take a branch of that name before the tag
        _git(ROOT, "clone", "--quiet", "--no-checkout", str(ROOT), str(clone))
        _git(clone, "checkout", "--quiet", "--detach", f"refs/tags/v{version}")
        whole = any(name.startswith("ceph-tuner_") for name in names)
        build(clone, Path(scratch) / "again", sbom if sbom.is_file() else None, whole)
        return differences(digests(folder), digests(Path(scratch) / "again"))


def digests(folder: Path) -> Dict[str, str]:
    """SHA-256 of each file but the checksums themselves; nothing for what is no file, and so never signed."""
    files = sorted(path for path in folder.iterdir() if path.name not in (SUMS, f"{SUMS}.sig"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "" for path in files}


def notes(repository: Path, version: str, folder: Path) -> str:
    """What changed, what there is, and how to verify it."""
    changes = section((repository / CHANGELOG).read_text(encoding="utf-8"), version).strip()
    files = "".join(f"- `{path.name}`\n" for path in sorted(folder.iterdir()))
    check = f"ssh-keygen -Y verify -f release-signers -I {SIGNER} -n {NAMESPACE} -s {SUMS}.sig < {SUMS}"
    return (
        f"# ceph-tuner {version}\n\n{changes}\n\n## Files\n\n{files}\n"
        f"Verify them before you install one:\n\n```console\n$ {check}\n$ sha256sum --check --strict {SUMS}\n```\n"
    )


def section(changelog: str, name: str) -> str:
    """The text under a heading of the second level; empty where there is none."""
    match = re.search(rf"^## \[{re.escape(name)}\].*?\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    return match[1] if match else ""


def version_of(repository: Path) -> str:
    """As the program says it."""
    (version,) = re.findall(r'^__version__ = "(.+)"$', (repository / INIT).read_text("utf-8"), re.MULTILINE)
    return str(version)


def _numbers(version: str) -> List[int]:
    return [int(part) for part in version.split(".")]


def _download(repository: Path, wheels: Path) -> None:
    """Fetch what the lock file pins, for Debian's Python: pip holds each file against its hashes."""
    with tempfile.TemporaryDirectory() as scratch:
        python = f"{scratch}/bin/python"
        _run(["/usr/bin/python3", "-m", "venv", scratch], repository)
        exact = ["--no-deps", "--require-hashes", "--only-binary=:all:", "--disable-pip-version-check", "--quiet"]
        lock = str(repository / "requirements/program.txt")
        _run([python, "-m", "pip", "download", *exact, "-r", lock, "-d", str(wheels)], repository)


def _git(repository: Path, *words: str) -> str:
    return _run(["git", *words], repository)


def _run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ}, check=False)
    if done.returncode:
        _refuse(f"`{' '.join(command[:3])}`: {done.stderr.strip()[-1000:]}")
    return done.stdout


def _refuse(why: str) -> None:
    sys.exit(f"error: {why}")


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("prepare").add_argument("version")
    for name in ("build", "sign", "verify"):
        steps.add_parser(name).add_argument("folder", type=Path)
    steps.choices["build"].add_argument("--sbom", type=Path)
    steps.choices["sign"].add_argument("--key", type=Path, required=True)
    steps.choices["verify"].add_argument("--signers", type=Path, required=True)
    steps.choices["verify"].add_argument("--rebuild", action="store_true")
    options = parser.parse_args(arguments)
    if options.step == "prepare":
        prepare(ROOT, options.version)
    elif options.step == "build":
        build(ROOT, options.folder, options.sbom)
    elif options.step == "sign":
        sign(options.folder.resolve(), options.key.expanduser().resolve())
    else:
        faults = verify(options.folder, options.signers)
        faults = faults or (rebuilt(options.folder) if options.rebuild else [])
        print("\n".join(faults) or f"{options.folder}: whole, and signed by {SIGNER}")
        return 1 if faults else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
