"""A release from its tag to its signature, with a key that is thrown away."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Dict, Tuple

import pytest

import ceph_tuner
import debian_packages
import python_distributions
import release

# what all of them look at is built once, in one process
pytestmark = pytest.mark.xdist_group("release")

ROOT = Path(__file__).resolve().parent.parent.parent
NEXT = "9.8.7"


def key(folder: Path, name: str) -> Path:
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)], check=True)
    signer = f'{release.SIGNER} namespaces="{release.NAMESPACE}" {path.with_suffix(".pub").read_text("utf-8")}'
    (folder / f"{name}.signers").write_text(signer, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of what is here with one more change, which has its line in the changelog."""
    tree = tmp_path_factory.mktemp("clone") / "tree"
    python_distributions.export(ROOT, tree)
    text = (tree / "CHANGELOG.md").read_text("utf-8")
    rest = text.partition("## [Unreleased]\n")[2]
    rest = rest[rest.index("## [") :]
    unreleased = "## [Unreleased]\n\n### Added\n\n- What this release is about.\n\n"
    (tree / "CHANGELOG.md").write_text(f"# Changelog\n\n{unreleased}{rest}", encoding="utf-8")
    git = ["git", "-C", str(tree), "-c", "user.name=t", "-c", "user.email=t@t.invalid"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *words], check=True)
    for setting in ("user.name", "user.email"):
        subprocess.run(["git", "-C", str(tree), "config", setting, "t@t.invalid"], check=True)
    return tree


@pytest.fixture(scope="module")
def released(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Tuple[Path, Path]:
    """The release's folder, and that of the keys. The program's packages, which take minutes, are left out."""
    debian_packages.install(["debhelper", "openssh-client", "python3-venv", "rpm"])
    keys, folder = tmp_path_factory.mktemp("keys"), tmp_path_factory.mktemp("released") / NEXT
    sbom = keys / "sbom.json"
    sbom.write_text("{}\n", encoding="utf-8")
    release.prepare(repository, NEXT)
    release.build(repository, folder, sbom, whole=False)
    release.sign(folder, key(keys, "ours"))
    return folder, keys


@pytest.fixture
def copied(released: Tuple[Path, Path], tmp_path: Path) -> Tuple[Path, Path]:
    folder = tmp_path / "copy"
    subprocess.run(["cp", "-r", str(released[0]), str(folder)], check=True)
    return folder, released[1] / "ours.signers"


@pytest.mark.slow
def test_the_version_is_named_in_the_program_the_changelog_and_the_tag(
    released: Tuple[Path, Path], repository: Path
) -> None:
    assert release.version_of(repository) == NEXT
    text = (repository / "CHANGELOG.md").read_text("utf-8")
    assert release.section(text, "Unreleased").strip() == ""
    assert release.section(text, NEXT).strip() == "### Added\n\n- What this release is about."
    said = subprocess.run(["git", "describe", "--exact"], cwd=repository, capture_output=True, text=True, check=True)
    assert said.stdout == f"v{NEXT}\n"
    assert (
        subprocess.run(["git", "status", "--porcelain"], cwd=repository, capture_output=True, check=True).stdout == b""
    )


@pytest.mark.slow
def test_it_has_each_kind_of_file_with_notes_that_name_them(released: Tuple[Path, Path]) -> None:
    names = {path.name for path in released[0].iterdir()}
    files = {
        f"ceph_tuner-{NEXT}.tar.gz", f"ceph_tuner-{NEXT}-py3-none-any.whl", f"ceph-tuner-{NEXT}.cdx.json",
        f"ceph-mgr-tuner_{NEXT}-1_all.deb", f"ceph-mgr-tuner-{NEXT}-1.noarch.rpm",
    }  # fmt: skip
    assert names == {*files, "NOTES.md", "SHA256SUMS", "SHA256SUMS.sig"}
    notes = (released[0] / "NOTES.md").read_text("utf-8")
    assert "What this release is about." in notes
    assert all(f"`{name}`" in notes for name in files)


@pytest.mark.slow
def test_it_is_verified_as_its_notes_say(released: Tuple[Path, Path]) -> None:
    folder, keys = released
    assert release.verify(folder, keys / "ours.signers") == []
    notes = (folder / "NOTES.md").read_text("utf-8")
    commands = [line[2:] for line in notes.splitlines() if line.startswith("$ ")]
    assert len(commands) == 2
    for command in commands:
        text = command.replace("release-signers", str(keys / "ours.signers"))
        subprocess.run(["bash", "-c", text], cwd=folder, check=True, capture_output=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("changed", f"ceph_tuner-{NEXT}.tar.gz: changed"),
        ("missing", f"ceph_tuner-{NEXT}.tar.gz: missing"),
        ("more", "more.deb: not signed for"),
    ],
)
def test_a_file_that_is_not_as_it_was_signed_is_named(copied: Tuple[Path, Path], fault: str, said: str) -> None:
    folder, signers = copied
    sdist = folder / f"ceph_tuner-{NEXT}.tar.gz"
    if fault == "changed":
        sdist.write_bytes(sdist.read_bytes()[:-1])
    elif fault == "missing":
        sdist.unlink()
    else:
        (folder / "more.deb").write_bytes(b"")
    assert release.verify(folder, signers) == [said]


@pytest.mark.slow
def test_neither_other_checksums_nor_another_key_nor_no_signature_will_do(
    copied: Tuple[Path, Path], tmp_path: Path
) -> None:
    folder, signers = copied
    key(tmp_path, "another")
    (fault,) = release.verify(folder, tmp_path / "another.signers")
    assert fault.startswith("SHA256SUMS: ")
    sums = folder / "SHA256SUMS"
    sums.write_text(sums.read_text("utf-8").replace("0", "1", 1), encoding="utf-8")
    (fault,) = release.verify(folder, signers)
    assert fault.startswith("SHA256SUMS: ")
    (folder / "SHA256SUMS.sig").unlink()
    assert release.verify(folder, signers) == [f"{folder}: no SHA256SUMS with its signature"]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_built_again_from_the_tag_every_file_has_the_same_bytes(
    released: Tuple[Path, Path], repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = released
    monkeypatch.setattr(release, "ROOT", repository)
    os.utime(repository / "setup.py", (0, 0))
    assert release.rebuilt(folder) == []
    assert changed_by_another_file(folder, repository, tmp_path)


def changed_by_another_file(folder: Path, repository: Path, tmp_path: Path) -> Dict[str, str]:
    """What the comparison would say of a tree with one more word: it can fail."""
    other = tmp_path / "other"
    subprocess.run(["git", "clone", "-q", str(repository), str(other)], check=True)
    with (other / "README.md").open("a", encoding="utf-8") as file:
        file.write("one more word\n")
    sdist = python_distributions.build_sdist(other, tmp_path / "again")
    return {} if sdist.read_bytes() == (folder / sdist.name).read_bytes() else {sdist.name: "changed"}


def test_what_is_not_committed_is_not_released(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "tuner/ceph_tuner").mkdir(parents=True)
    (tmp_path / release.INIT).write_text(f'__version__ = "{ceph_tuner.__version__}"\n', encoding="utf-8")
    with pytest.raises(SystemExit, match="not committed"):
        release.prepare(tmp_path, NEXT)


@pytest.mark.parametrize("version", ["", "1.2", "v9.9.9", ceph_tuner.__version__, "0.0.1", "9.9.9; true"])
def test_a_version_that_does_not_follow_is_refused(version: str, tmp_path: Path) -> None:
    init = tmp_path / release.INIT
    init.parent.mkdir(parents=True)
    init.write_text(f'__version__ = "{ceph_tuner.__version__}"\n', encoding="utf-8")
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "all"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    with pytest.raises(SystemExit, match="expected one such as"):
        release.prepare(tmp_path, version)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A repository with what names a version, and no more."""
    tree = tmp_path / "small"
    (tree / "tuner/ceph_tuner").mkdir(parents=True)
    (tree / release.INIT).write_text('__version__ = "0.1.0"\n', encoding="utf-8")
    (tree / release.CHANGELOG).write_text("# Changelog\n\n## [Unreleased]\n\n- New.\n", encoding="utf-8")
    (tree / release.CHART).parent.mkdir(parents=True)
    (tree / release.CHART).write_text("apiVersion: v2\nversion: 0.1.0\nappVersion: 0.1.0\n", encoding="utf-8")
    settings = (["config", "user.name", "t"], ["config", "user.email", "t@t.invalid"])
    for words in (["init", "-q"], *settings, ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run(["git", "-C", str(tree), *words], check=True)
    return tree


def git(tree: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(tree), *words], capture_output=True, text=True, check=True).stdout.strip()


def test_the_chart_has_the_version_too(small: Path) -> None:
    release.prepare(small, NEXT)
    assert (small / release.CHART).read_text("utf-8") == f"apiVersion: v2\nversion: {NEXT}\nappVersion: {NEXT}\n"
    assert git(small, "status", "--porcelain") == ""


@pytest.mark.parametrize("shown", ["all", "no"])
def test_what_came_after_the_tag_is_not_released_under_it(small: Path, shown: str) -> None:
    release.prepare(small, NEXT)
    release.prepare(small, NEXT)
    git(small, "config", "status.showUntrackedFiles", shown)
    (small / "tuner/ceph_tuner/more.py").write_text("", encoding="utf-8")
    with pytest.raises(SystemExit, match="not committed"):
        release.prepare(small, NEXT)


def test_a_tag_at_another_commit_is_found_before_anything_is_committed(small: Path) -> None:
    git(small, "tag", f"v{NEXT}")
    git(small, "commit", "--allow-empty", "-qm", "more")
    before = git(small, "rev-parse", "HEAD")
    with pytest.raises(SystemExit, match="another commit"):
        release.prepare(small, NEXT)
    assert git(small, "rev-parse", "HEAD") == before
    assert git(small, "status", "--porcelain") == ""


def test_a_release_that_died_before_its_tag_gets_it_in_the_next_run(small: Path) -> None:
    release.prepare(small, NEXT)
    git(small, "tag", "-d", f"v{NEXT}")
    head = git(small, "rev-parse", "HEAD")
    release.prepare(small, NEXT)
    assert git(small, "rev-parse", f"v{NEXT}^{{commit}}") == head


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SHA256SUMS.deb", "SHA256SUMS-more", "SHA256SUMS.sig.whl", "folder/", "link"])
def test_nothing_is_passed_over_for_its_name_or_its_kind(copied: Tuple[Path, Path], name: str) -> None:
    folder, signers = copied
    if name.endswith("/"):
        (folder / name).mkdir()
        (folder / name / "more.deb").write_bytes(b"")
    elif name == "link":
        (folder / name).symlink_to("nowhere")
    else:
        (folder / name).write_bytes(b"")
    assert release.verify(folder, signers) == [f"{name.rstrip('/')}: not signed for"]


def test_it_is_built_again_from_the_tag_and_from_no_branch_of_its_name(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release.prepare(small, NEXT)
    tagged = git(small, "rev-parse", "HEAD")
    git(small, "commit", "--allow-empty", "-qm", "more")
    git(small, "branch", f"v{NEXT}")
    folder, built = tmp_path / "released", []
    folder.mkdir()
    (folder / f"ceph_tuner-{NEXT}.tar.gz").write_bytes(b"")

    def build(repository: Path, output: Path, *_: object) -> None:
        built.append(git(repository, "rev-parse", "HEAD"))
        output.mkdir()

    monkeypatch.setattr(release, "ROOT", small)
    monkeypatch.setattr(release, "build", build)
    release.rebuilt(folder)
    assert built == [tagged]
