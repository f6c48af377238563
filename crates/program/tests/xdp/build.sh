#!/bin/sh
# Makes the objects of this folder from their sources, as they are committed: once by Debian 12's clang 14, once by clang 19 with all
# that -mcpu=v4 has. Needs clang, clang-19, llvm, libbpf-dev and linux-libc-dev.
set -e
cd "$(dirname "$0")"
flags="-O2 -g -Wall -Wno-pass-failed -target bpf -fdebug-compilation-dir=. -I/usr/include/$(uname -m)-linux-gnu"
for source in *.c; do
	name=$(basename "$source" .c)
	clang $flags -mcpu=v3 -c "$source" -o "$name.v3.o"
	llvm-strip -g "$name.v3.o"
	clang-19 $flags -mcpu=v4 -c "$source" -o "$name.v4.o"
	llvm-strip -g "$name.v4.o"
done
for name in careless chain inner locked loops prefixes repeated; do
	mv $name.v3.o $name.o
	rm $name.v4.o
done
