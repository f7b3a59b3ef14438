"""Packages live in top-level folders by role; each keeps the name that it is imported by."""

import re
from pathlib import Path

from setuptools import find_packages, setup

PACKAGES = {"ceph_tuner": "tuner", "ceph_lab": "tuner", "ceph_tuner_cli": "cli", "ceph_tuner_profiles": "profiles"}
HERE = Path(__file__).parent
# the program says it too, and the plugin, which is copied without this file
INIT = (HERE / "tuner/ceph_tuner/__init__.py").read_text(encoding="utf-8")
(VERSION,) = re.findall(r'^__version__ = "(.+)"$', INIT, re.MULTILINE)

setup(
    name="ceph-tuner",
    version=VERSION,
    description="Fleet tuning advisor for Ceph: states SLOs, searches mClock settings, writes them back safely",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="LGPL-2.1-or-later",
    python_requires=">=3.9",
    package_dir={package: f"{role}/{package}" for package, role in PACKAGES.items()},
    packages=[
        name for package, role in PACKAGES.items() for name in find_packages(role, include=[package, f"{package}.*"])
    ],
    package_data={
        "ceph_tuner": ["py.typed", "report/page.*"],
        "ceph_lab": ["py.typed", "drives/*.c", "drives/*.h"],
        "ceph_tuner_cli": ["py.typed"],
        "ceph_tuner_profiles": ["py.typed", "*.yaml", "**/*.yaml"],
    },
    data_files=[
        ("share/ceph-tuner/mgr/tuner", [str(p) for p in sorted(Path("mgr_module/tuner").glob("*.py"))]),
        ("share/ceph-tuner/examples", [str(p) for p in sorted(Path("examples").glob("*.yaml"))]),
        ("share/ceph-tuner/dashboards", ["dashboards/ceph-tuner.json", "dashboards/alerts.yaml"]),
    ],
    install_requires=[
        "cryptography>=41",
        "jinja2>=3.1",
        "jsonschema>=4.17",
        # what `jinja2` brings: pages are marked as safe with it
        "markupsafe>=2.0",
        # inlined as SVG in what `ceph-tuner report` writes
        "matplotlib>=3.8",
        # without it the twin runs uncompiled: the same results, slower
        'numba>=0.59; python_version >= "3.9" and python_version < "3.15"',
        # of numba's version; what it compiled is loaded with this alone
        'llvmlite>=0.42; python_version >= "3.9" and python_version < "3.15"',
        "numpy>=1.24",
        "requests>=2.31",
        "rich>=14.3",
        "ruamel.yaml>=0.18",
        "scikit-learn>=1.3",
        "scikit-optimize>=0.10.2",
        "scipy>=1.11.1",
        "threadpoolctl>=3.1",
        "typer>=0.15.4",
        # what `requests` brings: its connections are ended when time is up
        "urllib3>=1.26",
        # the file that `gather` writes
        "zstandard>=0.22",
    ],
    extras_require={
        # peers of benchmarks/search.py; those that need torch and botorch are left out where these are not installed
        "bench": ["coco-experiment>=2.8", "optuna>=4.9"],
        # `fleet recommend --dask`
        "dask": ["distributed>=2024.5"],
        # style, types and rules between the parts; where packages come from
        "dev": [
            # the workflow of the hosted CI, by its schema
            "check-jsonschema>=0.29",
            # `make sbom`
            "cyclonedx-bom>=7.0",
            "cyclonedx-python-lib[json-validation]>=8.0",
            "import-linter>=2.0",
            "mypy>=1.10",
            "pre-commit>=3.5",
            "ruff>=0.6",
            "types-jsonschema",
            "types-requests",
            # `make lock`
            "uv>=0.6",
        ],
        # passwords of dashboards in the system's keyring
        "keyring": ["keyring>=24"],
        "docs": ["furo", "myst-parser>=2.0", "sphinx>=7.0"],
        # what the tests import, and what runs them
        "test": [
            "coverage[toml]>=7.4",
            "dask>=2024.5",
            "distributed>=2024.5",
            "hypothesis>=6.100",
            "keyring>=24",
            "optuna>=4.9",
            # reads the lock files
            "packaging>=23.0",
            "markdown-it-py>=3.0",
            "mdit-py-plugins>=0.4",
            # drives Debian's Chromium; it is not asked to bring one
            "playwright>=1.40",
            "prometheus-client>=0.20",
            # 9.2 keeps names of tests elsewhere, and xdist 3.8 no longer sees which belong into one process
            "pytest>=8.0,<9.2",
            "pytest-cov>=5.0",
            "pytest-timeout>=2.3",
            "pytest-xdist>=3.6",
            'tomli>=2.0; python_version < "3.11"',
        ],
    },
    entry_points={
        "console_scripts": ["ceph-tuner = ceph_tuner_cli.main:main"],
        # what runs clusters on this machine, by the names that `--cluster` takes
        "ceph_tuner.cluster": ["lab = ceph_lab.cluster:Lab.open"],
    },
    classifiers=[
        "Environment :: Console",
        "Intended Audience :: System Administrators",
        "License :: OSI Approved :: GNU Lesser General Public License v2 or later (LGPLv2+)",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3.9",
        "Programming Language :: Python :: 3.13",
        "Topic :: System :: Clustering",
        "Topic :: System :: Filesystems",
    ],
)
