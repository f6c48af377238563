"""The packages that packaging/build makes, each installed into a clean environment."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterator

import pytest

from longwire import program

USE = """
from longwire import Scenario, program, simulate
net = Scenario()
net.host("a")
net.host("b")
net.link("a", "b", delay="1 ms")
net.source("a", "b", interval="1 ms", packets=3)
print(program())
print(simulate(net).packets["delay_ns"])
"""

# Libraries that every system of a manylinux tag has (PEP 600).
COMMON = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}

# Installs a Debian package in a new system, uses it, and removes it.
IN_A_NEW_SYSTEM = """
set -eu
cd /tmp
apt-get install -y -qq --no-install-recommends ./longwire_*.deb
for file in bin/longwire lib/systemd/system/longwire.service share/man/man1/longwire.1.gz \\
    share/man/man1/longwire-serve.1.gz share/bash-completion/completions/longwire \\
    share/zsh/vendor-completions/_longwire share/fish/vendor_completions.d/longwire.fish; do
    test -s /usr/$file
done
getent group longwire
longwire run --virtual /usr/share/doc/longwire/examples/two-hosts.toml
# Its bounds are those of an idle machine.
longwire demo --json >demo.json || test $? = 1
# A system without systemd, whose tool is asked all the same.
mkdir -p /run/systemd/system
printf '#!/bin/sh\\necho "$*" >>/tmp/asked\\n' >/usr/local/bin/systemctl
chmod 755 /usr/local/bin/systemctl
PATH=/usr/local/bin:$PATH dpkg --purge longwire
grep -qx 'disable --now longwire.service' /tmp/asked
left=$(find /etc /usr /var/lib -name '*longwire*')
test -z "$left" || { echo "left: $left"; exit 1; }
"""


@pytest.fixture(scope="module")
def packages() -> Path:
    """The folder of the packages of the program under test."""
    repository = Path(__file__).resolve().parents[2]
    built = Path(program()).parent
    environment = {**os.environ, "CARGO_TARGET_DIR": str(built.parent)}
    subprocess.run([repository / "packaging" / "build", built.name], env=environment, check=True)
    return repository / "target" / "packages"


def is_real(demo: str) -> bool:
    """Whether a demo reports real packets behind a link. Its own bounds are those of an idle machine."""
    report: Dict[str, Any] = json.loads(demo)
    measured = {row["name"]: row["measured"] for row in report["rows"]}
    return report["mode"] == "real" and 9.5e6 < measured["bandwidth"] < 10.5e6


def needed_libc(binary: Path) -> int:
    """The newest 2.x of glibc whose symbols a program needs."""
    listed = subprocess.run(["objdump", "-T", str(binary)], capture_output=True, text=True, check=True)
    return max(int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", listed.stdout))


def test_the_wheel_installs_with_its_program(packages: Path, tmp_path: Path) -> None:
    (wheel,) = packages.glob("longwire-*.whl")
    fresh = tmp_path / "fresh"
    subprocess.run([sys.executable, "-m", "venv", str(fresh)], check=True)
    install = [str(fresh / "bin" / "pip"), "install", "--quiet", "--no-index", str(wheel)]
    subprocess.run(install, check=True)

    own = fresh / "bin" / "longwire"
    tag = re.fullmatch(rf"longwire-0\.1\.0-py3-none-manylinux_2_(\d+)_{platform.machine()}\.whl", wheel.name)
    assert tag is not None, wheel.name
    assert needed_libc(own) <= int(tag[1])
    headers = subprocess.run(["objdump", "-p", str(own)], capture_output=True, text=True, check=True)
    assert set(re.findall(r"NEEDED +(\S+)", headers.stdout)) <= COMMON

    environment = {name: value for name, value in os.environ.items() if name != "LONGWIRE"}
    version = subprocess.run([own, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("longwire 0.1.0")
    command = [str(fresh / "bin" / "python"), "-c", USE]
    used = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert used.stdout == f"{own}\n[1000000, 1000000, 1000000]\n", used.stderr
    demo = subprocess.run([own, "demo", "--json"], stdout=subprocess.PIPE, text=True, check=False)
    assert os.geteuid() != 0 or is_real(demo.stdout), demo.stdout


@pytest.fixture(scope="module")
def new_system(packages: Path, labs: None) -> Iterator[Path]:
    """A folder with a new Debian, base.tar, and with what the demo of the Debian package said in it."""
    found = list(packages.glob("longwire_*.deb"))
    if not found:
        pytest.skip("cargo-deb is not installed")
    if shutil.which("mmdebstrap") is None:
        pytest.skip("mmdebstrap is not installed")
    with tempfile.TemporaryDirectory(prefix="longwire-") as folder:
        (Path(folder) / "use").write_text(IN_A_NEW_SYSTEM)
        # What the container file downloads for itself.
        without = '--exclude "./var/lib/apt/lists/*" --exclude "./var/cache/apt/*"'
        hooks = [
            f'tar -C "$1" --one-file-system {without} -cf {folder}/base.tar .',
            'mkdir "$1/dev/net" && mknod "$1/dev/net/tun" c 10 200',
            f"copy-in {found[0]} {folder}/use /tmp",
            'unshare --mount chroot "$1" sh /tmp/use',
            f"copy-out /tmp/demo.json {folder}",
        ]
        make = ["mmdebstrap", "--quiet", "--mode=root", "--variant=apt", "--format=null"]
        release = platform.freedesktop_os_release()["VERSION_CODENAME"]
        subprocess.run([*make, *(f"--customize-hook={hook}" for hook in hooks), release, "-"], check=True)
        yield Path(folder)


def test_the_debian_package_installs_in_a_new_system(new_system: Path) -> None:
    demo = (new_system / "demo.json").read_text()
    assert is_real(demo), demo


def podman(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Runs podman, with all that it stores below a folder, and no control groups but those of version 2."""
    own = [
        f"--root={folder}/root",
        f"--runroot={folder}/state",
        "--cgroup-manager=cgroupfs",
        "--runtime=crun",
    ]
    script = 'mount -t cgroup2 none /sys/fs/cgroup; exec podman "$@"'
    command = ["unshare", "--mount", "sh", "-ec", script, "sh", *own, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


#: Options of a container. Limits can't be raised everywhere.
ALONE = [
    "--rm",
    "--cgroups=disabled",
    "--network=none",
    "--ulimit=nofile=1024:1024",
    "--ulimit=nproc=1024:1024",
]


@pytest.fixture(scope="module")
def container(packages: Path, new_system: Path) -> Path:
    """The folder of the images of a new podman: among them longwire, made by packaging/Containerfile. Its
    base is a Debian of mmdebstrap here, not the image of that name, and its program that of the tests."""
    if shutil.which("podman") is None or shutil.which("crun") is None:
        pytest.skip("podman or crun is not installed")
    base = "docker.io/library/debian:bookworm-slim"
    podman(new_system, "import", "base.tar", base)
    tried = podman(new_system, "run", *ALONE, base, "true")
    if tried.returncode != 0:
        pytest.skip(f"podman can't run a container here: {tried.stderr}")
    build_image(new_system, "packaging/Containerfile", "longwire")
    return new_system


def build_image(images: Path, file: str, tag: str) -> None:
    """Makes an image by one of the repository's container files."""
    repository = Path(__file__).resolve().parents[2]
    offline = ["--pull=never", "--isolation=chroot", "--network=host"]
    built = podman(images, "build", *offline, f"--file={repository / file}", f"--tag={tag}", str(repository))
    assert built.returncode == 0, built.stderr


def test_the_container_file_makes_a_container(container: Path) -> None:
    example = "/usr/share/doc/longwire/examples/two-hosts.toml"
    virtual = podman(container, "run", *ALONE, "longwire", "run", "--virtual", example)
    assert "in virtual time every packet leaves at its time" in virtual.stdout, virtual.stderr
    # What the file says that test hosts need.
    rights = ["--cap-add=SYS_ADMIN,NET_ADMIN,NET_RAW", "--device=/dev/net/tun"]
    behind = ["longwire", "exec", "--delay=20ms", "--", "sh", "-c", "ping -c 1 $LONGWIRE_FAR"]
    for forwards in (0, 1):
        # A container can't turn it on.
        setting = f"--sysctl=net.ipv4.ip_forward={forwards}"
        ping = podman(container, "run", *ALONE, *rights, setting, *behind)
        round_trip = re.search(r"time=([0-9.]+) ms", ping.stdout)
        assert round_trip is not None and float(round_trip[1]) >= 40, ping.stdout + ping.stderr
        assert ("nothing outside can be reached" in ping.stderr) == (forwards == 0), ping.stderr


# Client and server of quic-interop-runner, each in a namespace, with the simulator's namespace between them.
BETWEEN = """
set -eu
for end in 0:left:193.167.0 1:right:193.167.100; do
    IFS=: read -r number name network <<END
$end
END
    ip netns add "lwquic-$name"
    ip link add "eth$number" netns lwquic-sim type veth peer name eth0 netns "lwquic-$name"
    ip -n lwquic-sim addr add "$network.2/24" dev "eth$number"
    ip -n lwquic-sim link set "eth$number" up
    ip -n "lwquic-$name" addr add "$network.100/24" dev eth0
    ip -n "lwquic-$name" link set eth0 up
    ip -n "lwquic-$name" route add default via "$network.2"
done
"""


@pytest.fixture
def interop_network() -> Iterator[str]:
    """The namespace for the simulator, with a client behind its eth0 and a server behind its eth1."""
    subprocess.run(["ip", "netns", "add", "lwquic-sim"], check=True)
    try:
        subprocess.run(["sh", "-c", BETWEEN], check=True)
        yield "lwquic-sim"
    finally:
        for name in ("sim", "left", "right"):
            subprocess.run(["ip", "netns", "delete", f"lwquic-{name}"], check=False)


def test_the_image_of_quic_interop_is_a_simulator(
    container: Path, interop_network: str, tmp_path: Path
) -> None:
    build_image(container, "packaging/quic-interop/Containerfile", "longwire-quic-interop")
    ping = "ip netns exec lwquic-left ping -i 0.2 -W 1 193.167.100.100"
    # It starts while this asks; then it is ended as the runner ends it.
    first = f"for n in $(seq 20); do {ping} -c 1 >{tmp_path}/first && break; done"
    asked = f"{first}; {ping} -c 5; kill -TERM $(cat {tmp_path}/pid)"
    asking = subprocess.Popen(["sh", "-c", asked], stdout=subprocess.PIPE, text=True)
    ran = podman(
        container,
        "run",
        "--rm",
        "--cgroups=disabled",
        "--ulimit=nofile=1024:1024",
        "--ulimit=nproc=1024:1024",
        f"--network=ns:/run/netns/{interop_network}",
        "--cap-add=NET_ADMIN,NET_RAW",
        f"--pidfile={tmp_path}/pid",
        f"--volume={tmp_path}:/logs",
        "--env=SCENARIO=simple-p2p --delay=15ms --bandwidth=10Mbps --queue=25",
        "longwire-quic-interop",
    )
    pinged, _ = asking.communicate()
    round_trips = [float(ms) for ms in re.findall(r"time=([0-9.]+) ms", pinged)]
    assert len(round_trips) == 5 and min(round_trips) >= 30, pinged + ran.stdout + ran.stderr
    assert ran.returncode == 143, ran.stdout + ran.stderr
    for side in ("left", "right"):
        # The file's header, and half of what was sent.
        assert (tmp_path / f"trace_node_{side}.pcap").stat().st_size > 24 + 3 * (16 + 98)
