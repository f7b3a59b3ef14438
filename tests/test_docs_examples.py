"""What the documentation shows is real: its commands exist and run, its files are read by their readers."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Set

import pytest
import typer
from ruamel.yaml import YAML

import documented
from ceph_lab import drive_file, pools_file
from ceph_tuner.files import cluster_file, profile_file, slo_file
from ceph_tuner.fleet import fleet_file
from ceph_tuner_cli.main import app
from documented import DOCS, ROOT, Block

sys.path.insert(0, str(DOCS))

import write_commands

PROGRAM = typer.main.get_command(app)
PLUGIN = {command.name: command for command in write_commands.of_the_plugin()}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))

CONSOLES = documented.every_block("console")

READERS: Dict[str, Callable[[Path], Any]] = {
    "clusters": fleet_file.read,
    "objectives": slo_file.read,
    "settings": profile_file.read,
    "osd": cluster_file.read,
    "data": drive_file.read,
    "pools": pools_file.read,
}
"""A key of a file's top level -> who reads such files."""

OTHERS = {"apiVersion", "groups", "scrape_configs", "service_type", "rule_files", "spec", "extra_container_args"}
"""Keys of files that other programs read: Kubernetes, Prometheus, cephadm."""


def known(words: List[str]) -> None:
    """Raise where a command of ours is not as it is written."""
    if words[0].rpartition("/")[2] == "ceph-tuner":
        documented.parse(PROGRAM, words[1:])
    elif words[:2] == ["ceph", "tuner"]:
        of_the_plugin(words)
    elif words[0] == "make":
        assert {word for word in words[1:] if "=" not in word} <= TARGETS


def of_the_plugin(words: List[str]) -> None:
    """Hold words against the module's declarations, as the `ceph` program does with what the mgr declares."""
    name = next((" ".join(words[:length]) for length in (4, 3) if " ".join(words[:length]) in PLUGIN), "")
    assert name, f"no such command: {' '.join(words)}"
    rest = words[len(name.split()) :]
    declared = [names.strip("`") for names, _, _ in PLUGIN[name].rows]
    options = {names.split()[0] for names in declared if names.startswith("-")} | {
        f"--{names.lower()}" for names in declared if not names.startswith("-")
    }
    # the `ceph` program takes a dash for an underscore
    options |= {option.replace("_", "-") for option in options}
    values = {"--format", "-i"} | {
        option for option in options if option.lstrip("-").replace("-", "_").upper() in declared
    }
    given, positional = iter(rest), 0
    for word in given:
        if word.startswith("-") and word != "-":
            assert word.partition("=")[0] in options, f"{name} has no {word}"
            if word in values:
                next(given)
        else:
            positional += 1
    assert positional <= sum(not names.startswith("-") for names in declared), f"{name} takes fewer words"


@pytest.mark.parametrize("block", CONSOLES, ids=lambda block: block.place)
def test_every_command_of_a_page_exists_with_its_options(block: Block) -> None:
    assert block.commands, "no line begins with `$ `"
    for command in block.commands:
        for part in command.parts:
            known(part.words)


@pytest.mark.parametrize("block", CONSOLES, ids=lambda block: block.place)
def test_a_comment_about_the_tests_is_understood_and_holds_for_something(block: Block) -> None:
    assert documented.unknown_notes(block) == []
    prefixes = re.findall(r"<!-- only parsed `([^`]+)`", "\n".join(block.notes))
    for prefix in prefixes:
        assert any(command.text.startswith(prefix) for command in block.commands), prefix


def test_no_command_hides_outside_of_a_block_of_commands() -> None:
    hidden = [
        f"{block.place}: {line}"
        for page in documented.pages()
        for block in documented.blocks(page)
        if block.language != "console"
        for line in block.text.splitlines()
        if re.match(r"(\$ |(ceph-tuner|ceph|make|cephadm|kubectl) [a-z])", line)
        and "[OPTIONS]" not in line
        # how a command of the plugin is called, on its generated page
        and not ("commands/ceph-tuner" in block.place and block.language == "text")
    ]
    assert hidden == []


@pytest.mark.parametrize("page", documented.pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_the_text_exist_with_their_options(page: Path) -> None:
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for mentioned in re.findall(r"`(ceph-tuner [^`]+|ceph tuner [^`]+)`", text):
        # abridged in the text: a name without its arguments, or what follows a `…`
        words = " ".join(mentioned.split()).split(" -- ")[0].split()
        if words[1] in ("COMMAND", "…") or words[1].startswith("-") or words[2:3] in (["…"], ["-h"]):
            continue
        if words[0] == "ceph":
            assert any(name.startswith(" ".join(words[:length])) for name in PLUGIN for length in (3, 4)), mentioned
            continue
        command = PROGRAM
        for word in words[1:]:
            command = getattr(command, "commands", {}).get(word, command)
        options = {word.partition("=")[0].rstrip(",.") for word in words if word.startswith("--")}
        assert command is not PROGRAM, mentioned
        assert options <= every_option(command) | {"--help"}, mentioned


def every_option(command: Any) -> Set[str]:
    """Of a command, or of all commands of a group."""
    if hasattr(command, "commands"):
        return {option for nested in command.commands.values() for option in every_option(nested)}
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}


@pytest.mark.parametrize("block", documented.every_block("yaml"), ids=lambda block: block.place)
def test_a_file_that_a_page_shows_is_read_by_its_reader(block: Block, tmp_path: Path) -> None:
    documents = [found for found in YAML(typ="safe", pure=True).load_all(block.text) if found]
    assert documents
    for document in documents:
        readers = [READERS[key] for key in READERS if key in document and "schema" in document]
        if not readers:
            assert OTHERS & set(document), f"nobody reads it: {list(document)}"
            continue
        path = tmp_path / "shown.yaml"
        path.write_text(block.text, encoding="utf-8")
        assert readers[0](path)


@pytest.mark.parametrize("block", documented.every_block("python"), ids=lambda block: block.place)
def test_python_on_a_page_is_python_and_imports_what_is_there(block: Block) -> None:
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.ImportFrom):
            module = __import__(str(node.module), fromlist=[each.name for each in node.names])
            assert all(hasattr(module, each.name) for each in node.names)


def test_make_calls_commands_that_exist() -> None:
    for target in ("recommend", "lab", "tune"):
        printed = subprocess.run(
            ["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        called = [line.split() for line in printed.splitlines() if line.split(" ")[0].endswith("/ceph-tuner")]
        assert called, target
        for words in called:
            known(words)


@pytest.mark.parametrize(
    ("given", "lab", "option"),
    [
        (["DRIVE=hdd"], ["--name", "ahead-hdd", "--drive", "hdd", "--device-size", "6GiB"], None),
        (
            ["DRIVE=nvme", "SLOWER=6"],
            ["--name", "ahead-nvme-slower-6", "--drive", "nvme", "--device-size", "6GiB", "--slower", "6"],
            None,
        ),
        (
            ["DRIVE=hdd", "POOL=ec:2+1"],
            ["--name", "ahead-hdd-ec-2-1", "--drive", "hdd", "--device-size", "6GiB"],
            "pool=ec:2+1",
        ),
    ],
)
def test_make_validates_the_twin_on_the_lab_that_is_asked_for(
    given: List[str], lab: List[str], option: Optional[str]
) -> None:
    printed = subprocess.run(
        ["make", "--dry-run", "validate-twin", *given], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.replace("\\\n", " ")
    (up,) = (line.split() for line in printed.splitlines() if "ceph-tuner lab up" in line)
    assert up[1:] == ["lab", "up", *lab]
    known(up)
    (measured,) = (line.split() for line in printed.splitlines() if "twin_ahead.py" in line)
    name = lab[1]
    assert measured[measured.index("--cluster") + 1] == name
    assert measured[measured.index("--ahead") + 1] == f"build/twin-{name}.json"
    assert (measured[measured.index("--load-option") + 1] if "--load-option" in measured else None) == option
    # whatever the measurement came to
    assert measured[measured.index("down") + 2] == f"{name};"


def test_languages_of_blocks_are_ones_that_are_looked_at() -> None:
    looked_at = {"console", "yaml", "python", "text", "", "{include}", "{toctree}", "dockerfile", "ini"}
    for page in documented.pages():
        for block in documented.blocks(page):
            assert block.language in looked_at, block.place


def test_a_test_that_a_page_names_is_there() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")]
    defined = set(re.findall(r"def (test_[a-z0-9_]+)\(", "\n".join(sources)))
    for page in documented.pages():
        text = page.read_text(encoding="utf-8")
        assert set(re.findall(r"`(test_[a-z0-9_]+)`", text)) <= defined, page.name
        for path in re.findall(r"`((?:tests|benchmarks|examples|dashboards)/[\w./-]*)`", text):
            assert (ROOT / path).exists(), f"{page.name}: {path}"
