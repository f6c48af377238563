// SPDX-License-Identifier: Apache-2.0 OR MIT
// Heavy hitters: which flows send most bytes. A count-min sketch (Cormode and Muthukrishnan, "An Improved Data Stream Summary", 2005)
// of four rows estimates each flow's bytes; flows beyond a threshold are in a table.
//
// Key: general (ALL), or any. Flows are addresses, ports and protocol, of IPv4, with options too, and IPv6, with extension headers too. Ports
// are 0 where there are none, and so they are of fragments: only the first has any, and all fragments between two addresses are one flow of
// their protocol. What has more than eight extension headers, or ends within them, is without ports, too, and of the protocol that the last of them
// says that comes next: nothing of IP goes uncounted.
//
// With b bytes counted altogether, an estimate is never too low, and too high by more than b · e / 1024 with a probability of at most e^-4.
//
// State, 24 bytes, zero at first: then the table stays empty.
//	 0	u64	bytes from which on a flow is in the table; 0: none is
//	 8	u64	seed of the hash, which senders should not know; to be changed only with an empty sketch
//	16	u64	flows that the full table had no room for, by packets (written here): raise the threshold
//
// Maps: the control half clears them at the beginning of an interval.
//	.bss	one value: the sketch, four rows of 1024 u64 bytes
//	top	key: 16 bytes source, 16 bytes destination (of IPv4 as ::ffff:a.b.c.d), 2 bytes source port, 2 bytes destination port, as in headers,
//		u32 protocol; value: u64 estimated bytes, u64 packets since it is in the table
//
// Returns XDP_PASS.
//
// Not one of the paper's.
#include "forwarder.h"

enum { ROWS = 4, COLUMNS = 1024 };

struct state {
	__u64 threshold;
	__u64 seed;
	__u64 missed;
};

LW_STATE(struct state);

struct flow {
	__be32 source[4], destination[4];
	__be16 source_port, destination_port;
	__u32 protocol;
};

struct sent {
	__u64 bytes;
	__u64 packets;
};

__u64 sketch[ROWS][COLUMNS];

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct flow);
	__type(value, struct sent);
} top SEC(".maps");

/* Counts in every row, and gives the least of what is there then. */
static __always_inline __u64 counted(__u64 hash, __u64 bytes)
{
	__u64 least = ~0ull, now;
	__u32 row;

#pragma unroll
	for (row = 0; row < ROWS; row++) {
		now = __sync_fetch_and_add(&sketch[row][hash >> (row * 16) & (COLUMNS - 1)], bytes) + bytes;
		if (now < least)
			least = now;
	}
	return least;
}

SEC("xdp")
int heavy_hitters(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	void *data = DATA(ctx), *end = END(ctx);
	__u64 threshold = state->threshold, estimate;
	struct sent *place, first = { .packets = 1 };
	struct flow flow = {};
	struct udp *ports;
	__u32 protocol, at;

	at = whole(ctx, data, end, &protocol);
	if (protocol == NO_IP)
		return XDP_PASS;
	address(data, end, SOURCE, flow.source);
	address(data, end, DESTINATION, flow.destination);
	flow.protocol = protocol;
	if (protocol == UNSEEN)
		flow.protocol = lw_transport(ctx) & 0xff;
	ports = data + at;
	if (at && (protocol == IPPROTO_TCP || protocol == IPPROTO_UDP) && (void *)&ports->length <= end) {
		flow.source_port = ports->source;
		flow.destination_port = ports->destination;
	}
	estimate = counted(lw_hash(&flow, sizeof(flow), state->seed), end - data);
	if (!threshold || estimate < threshold)
		return XDP_PASS;
	place = bpf_map_lookup_elem(&top, &flow);
	if (place) {
		place->bytes = estimate;
		__sync_fetch_and_add(&place->packets, 1);
		return XDP_PASS;
	}
	first.bytes = estimate;
	if (bpf_map_update_elem(&top, &flow, &first, BPF_NOEXIST))
		__sync_fetch_and_add(&state->missed, 1);
	return XDP_PASS;
}
