// SPDX-License-Identifier: Apache-2.0 OR MIT
// Intrusion detector: reports packets that look as one of eight signatures says, and drops all that comes from addresses that its
// control half, after it has read the reports, has put among the filters.
//
// Key: general (ALL). IPv4, with options too, and IPv6.
//
// No state. Maps:
//	.bss		one value: the signatures (struct signature below), written by the control half, all unused at first
//	filters		key: 16 bytes, a source address (of IPv4 as ::ffff:a.b.c.d); value: u64 packets dropped. Written by the control half.
//	events		key: 16 bytes, a source address, and u32, the signature's number; value: u64 packets, u64 time of the first, u64 time
//			of the last, in nanoseconds. When it is full, what was not seen for long makes room.
//	probes		key: 16 bytes source and 16 bytes destination address, u16 destination port (0 without ports), u8 protocol, 0; value: u64 time of
//			the last packet, in nanoseconds. Of packets whose signature says so; room is made as above.
//
// A packet is reported under the first signature that it matches.
//
// Returns XDP_DROP with reason 0 if the source is filtered; else XDP_PASS.
//
// The paper describes it (section 4.4) and gives no figures.
#include "forwarder.h"

enum { SIGNATURES = 8 };

/* Of 8 bytes; all zero: not used. A packet matches if all that is asked does. */
struct signature {
	__u16 first;		/* first destination port */
	__u16 count;		/* how many ports; 0: any packet of the protocol */
	__u8 protocol;		/* protocol after IP; 0: the signature is not used */
	__u8 mask;		/* TCP flags that are looked at; 0: none. Of other protocols it has to be 0 */
	__u8 flags;		/* what they have to be */
	__u8 probe;		/* 1: what it was sent to goes among the probes */
};

struct signature signatures[SIGNATURES];

struct source {
	__be32 words[4];
};

struct cause {
	struct source source;
	__u32 signature;
};

struct probe {
	struct source source, destination;
	__u16 port;
	__u8 protocol;
	__u8 zero;
};

struct event {
	__u64 packets;
	__u64 first;
	__u64 last;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct source);
	__type(value, __u64);
} filters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct cause);
	__type(value, struct event);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct probe);
	__type(value, __u64);
} probes SEC(".maps");

static __always_inline void report(struct cause *cause)
{
	struct event *event = bpf_map_lookup_elem(&events, cause);
	__u64 now = bpf_ktime_get_ns();
	struct event first = { .packets = 1, .first = now, .last = now };

	if (event) {
		__sync_fetch_and_add(&event->packets, 1);
		event->last = now;
		return;
	}
	bpf_map_update_elem(&events, cause, &first, BPF_NOEXIST);
}

static __always_inline void note(struct probe *probe)
{
	__u64 *last = bpf_map_lookup_elem(&probes, probe);
	__u64 now = bpf_ktime_get_ns();

	if (last)
		*last = now;
	else
		bpf_map_update_elem(&probes, probe, &now, BPF_NOEXIST);
}

static __always_inline int matches(volatile struct signature *wanted, __u8 protocol, __u16 port, __u8 flags)
{
	__u16 count = wanted->count;

	if (protocol != wanted->protocol || !protocol)
		return 0;
	if (count && (__u16)(port - wanted->first) >= count)
		return 0;
	return (flags & wanted->mask) == wanted->flags;
}

SEC("xdp")
int detector(struct xdp_md *ctx)
{
	void *data = DATA(ctx), *end = END(ctx);
	struct cause cause = {};
	struct probe probe = {};
	__u64 *dropped;
	__u8 flags = 0;
	__u16 port = 0;
	__u32 protocol, at, i;

	at = transport(ctx, data, end, &protocol);
	if (protocol == NO_IP)
		return XDP_PASS;
	address(data, end, SOURCE, cause.source.words);
	dropped = bpf_map_lookup_elem(&filters, &cause.source);
	if (dropped) {
		__sync_fetch_and_add(dropped, 1);
		return lw_drop(0);
	}
	if (!at)
		return XDP_PASS;
	if (protocol == IPPROTO_TCP) {
		struct tcp *tcp = data + at;

		if ((void *)&tcp->window > end)
			return XDP_PASS;
		port = bpf_ntohs(tcp->destination);
		flags = tcp->flags;
	} else if (protocol == IPPROTO_UDP) {
		struct udp *udp = data + at;

		if ((void *)(udp + 1) > end)
			return XDP_PASS;
		port = bpf_ntohs(udp->destination);
	}
#pragma unroll
	for (i = 0; i < SIGNATURES; i++)
		if (matches(&signatures[i], protocol, port, flags)) {
			cause.signature = i;
			report(&cause);
			if (!signatures[i].probe)
				return XDP_PASS;
			probe.source = cause.source;
			address(data, end, DESTINATION, probe.destination.words);
			probe.port = port;
			probe.protocol = protocol;
			note(&probe);
			return XDP_PASS;
		}
	return XDP_PASS;
}
