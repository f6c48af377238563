#!/bin/sh
# Makes the objects of this folder from their sources, as they are committed: Debian 12's clang 14, and clang 19 for -mcpu=v4.
# Needs clang, clang-19, llvm, libbpf-dev and linux-libc-dev.
set -e
cd "$(dirname "$0")"
flags="-O2 -g -Wall -target bpf -fdebug-compilation-dir=. -I/usr/include/$(uname -m)-linux-gnu"
for name in counter globals refused legacy longwire relocated constants unsized events forgetful exits; do
	clang $flags -mcpu=v3 -c $name.c -o $name.o
	llvm-strip -g $name.o
done
clang-19 $flags -mcpu=v4 -c modern.c -o modern.o
llvm-strip -g modern.o
