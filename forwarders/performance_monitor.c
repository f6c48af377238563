// SPDX-License-Identifier: Apache-2.0 OR MIT
// Performance monitor: counts packets and bytes by their properties. Its control half says which, reads the counters from time to
// time, and sends summaries on.
//
// Key: general (ALL), or any. IPv4, with options too, and IPv6: later fragments too, which have no flags, and what has too many extension headers.
//
// State, 4 bytes, zero at first: then nothing is counted.
//	 0	u32	properties to count by, a sum of
//			 1	input port: map ports, by the port's number modulo 64
//			 2	protocol: map protocols, by its number
//			 4	TCP flags: map flags, by the eight flags' byte
//			 8	source address: map addresses
//			16	destination address: map addresses
//
// Maps: values are u64 packets, u64 bytes of frames, one for each worker.
//	addresses	key: 16 bytes, the address (of IPv4 as ::ffff:a.b.c.d); u32, 0 for source or 1 for destination. An address is counted
//			once the control half has put it in; programs add none, so that no sender can fill the map.
//
// Returns XDP_PASS.
//
// The paper describes it (section 4.4) and gives no figures.
#include "forwarder.h"

enum { PORTS = 1, PROTOCOLS = 2, FLAGS = 4, SOURCES = 8, DESTINATIONS = 16 };

struct state {
	__u32 properties;
};

LW_STATE(struct state);

struct counter {
	__u64 packets;
	__u64 bytes;
};

struct address {
	__be32 words[4];
	__u32 side;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, struct counter);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, struct counter);
} protocols SEC(".maps"), flags SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct address);
	__type(value, struct counter);
} addresses SEC(".maps");

static __always_inline void count(void *map, const void *key, __u32 bytes)
{
	struct counter *counter = bpf_map_lookup_elem(map, key);

	if (!counter)
		return;
	counter->packets += 1;
	counter->bytes += bytes;
}

static __always_inline void count_address(void *data, void *end, int side, __u32 bytes)
{
	struct address key = { .side = side };

	address(data, end, side, key.words);
	count(&addresses, &key, bytes);
}

SEC("xdp")
int performance_monitor(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	void *data = DATA(ctx), *end = END(ctx);
	__u32 properties = state->properties, bytes = end - data, protocol, key, at;
	struct tcp *tcp;

	if (properties & PORTS) {
		key = ctx->ingress_ifindex % 64;
		count(&ports, &key, bytes);
	}
	at = transport(ctx, data, end, &protocol);
	if (protocol == NO_IP)
		return XDP_PASS;
	if (properties & PROTOCOLS) {
		key = protocol == UNSEEN ? lw_transport(ctx) & 0xff : protocol;
		count(&protocols, &key, bytes);
	}
	if (properties & SOURCES)
		count_address(data, end, SOURCE, bytes);
	if (properties & DESTINATIONS)
		count_address(data, end, DESTINATION, bytes);
	tcp = data + at;
	if (!at || !(properties & FLAGS) || protocol != IPPROTO_TCP || (void *)&tcp->window > end)
		return XDP_PASS;
	key = tcp->flags;
	count(&flags, &key, bytes);
	return XDP_PASS;
}
