#!/bin/sh
# Makes the objects from the sources, as they are committed: Debian 12's clang 14. With a folder as argument, makes them there.
# Needs clang-14, llvm-14, libbpf-dev and linux-libc-dev.
#
# No path of this machine gets into an object: sources are named relatively, and what names files outside is stripped. The types
# of maps and the numbers of lines stay.
set -e
cd "$(dirname "$0")"
objects=${1:-objects}
headers="-I../crates/program/include -I/usr/include/$(uname -m)-linux-gnu"
paths="-fdebug-compilation-dir=. -fdebug-prefix-map=$PWD=."
for source in *.c; do
	object="$objects/$(basename "$source" .c).o"
	clang-14 -O2 -g -Wall -Wextra -Werror -fno-strict-aliasing -target bpf -mcpu=v3 $paths $headers -c "$source" -o "$object"
	llvm-strip-14 -g "$object"
done
