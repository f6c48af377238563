/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What Longwire adds to XDP programs. Include it after <linux/bpf.h>, and <bpf/bpf_helpers.h> if you use that.
 *
 *	clang -O2 -g -target bpf -I/usr/include/x86_64-linux-gnu -c program.c -o program.o
 *
 * The kernel's helpers have the kernel's names and numbers; these have numbers from 0x10000 on, so that a program that calls one
 * is refused by the kernel and by nobody else. Return codes are those of XDP: XDP_PASS is the next forwarder.
 */
#ifndef LONGWIRE_H
#define LONGWIRE_H

/* The address of this installation's state, of which `size` bytes are used: a constant, at most the size that was asked for when
 * it was installed. Zero in the beginning; the same for all packets of the flow, on all workers. Never 0.
 */
static void *(*const lw_flow_state)(__u32 size) = (void *)0x10000;

/* Names the type of the state, once in an object, outside of functions: then the object describes its fields, and `longwire forwarder get` and
 * `set` take it as --type. Without that clang describes it only if a map, a global variable or a function that is not inlined names it, too. No
 * program sees what this declares.
 *
 *	struct state { __u32 limit; };
 *	LW_STATE(struct state);
 */
#define LW_STATE(type) static type *const lw_state_type __attribute__((section("lw.state"), used))

/* Chooses the output queue, 0 to 65535. Returns 0, or a negative error number. */
static long (*const lw_choose_queue)(__u32 queue) = (void *)0x10001;

/* Sets the packet's mark: a number for programs behind this one, here and on other routers, and for rules of links. Returns 0. */
static long (*const lw_mark)(__u32 mark) = (void *)0x10002;

/* Notes the program's own reason, 0 to 63, under which the drop is counted; with a constant beyond, the program is refused, and what
 * only a packet tells counts as "other". Returns XDP_DROP. */
static long (*const lw_drop)(__u32 reason) = (void *)0x10003;

/* A hash of `size` bytes, 1 to 512, and a seed: the same on every machine. */
static __u64 (*const lw_hash)(const void *data, __u32 size, __u64 seed) = (void *)0x10004;

/* Chooses a link, by its number from 0 on among those that the installation names. Returns XDP_REDIRECT: the packet goes into it as it
 * is. (A port: bpf_redirect(port, 0), or bpf_redirect_map.)
 */
static long (*const lw_redirect_link)(__u32 link) = (void *)0x10005;

/* The packet's mark; 0 if no program has set one. */
static __u32 (*const lw_read_mark)(void) = (void *)0x10006;

/* Chooses a link for a packet that goes on to be routed (XDP_PASS): it takes this one, if the route leads where the link begins. Returns 0. */
static long (*const lw_choose_link)(__u32 link) = (void *)0x10007;

/* Where an IP packet's transport header is: behind IPv4's options, or behind at most eight extension headers of IPv6. Bits 0 to 7 are its
 * protocol, bits 16 to 31 its offset from the packet's first byte; 0, if it is not in this packet, which is a later fragment, is encrypted or has
 * no such header. A negative number, if it is no IP packet, ends within these headers, or has more: -22 in the first case, and else one whose bits 0 to
 * 7 are the protocol that the last header says comes next, of those that were walked over.
 */
static long (*const lw_transport)(struct xdp_md *context) = (void *)0x10008;

/* The bit of what lw_transport gives that says that the packet is a fragment, the first one or another. The protocol of a later one is what its
 * fragment header says.
 */
#define LW_FRAGMENT 0x100

#endif
