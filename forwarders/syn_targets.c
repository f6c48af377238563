// SPDX-License-Identifier: Apache-2.0 OR MIT
// SYN targets: counts TCP packets that ask for a connection (SYN without ACK) by the address and port that they go to. What the SYN
// monitor has no memory for, and is installed beside it while there are too many.
//
// Key: general (ALL). IPv4, with options too, and IPv6.
//
// No state. Maps:
//	targets		key: 16 bytes, a destination address (of IPv4 as ::ffff:a.b.c.d), and u32, its port; value: u64 SYNs. When it is full, what was
//			not seen for long makes room.
//
// Returns XDP_PASS.
//
// Not one of the paper's.
#include "forwarder.h"

struct target {
	__be32 words[4];
	__u32 port;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct target);
	__type(value, __u64);
} targets SEC(".maps");

SEC("xdp")
int syn_targets(struct xdp_md *ctx)
{
	void *data = DATA(ctx), *end = END(ctx);
	struct target target = {};
	__u64 *syns, first = 1;
	struct tcp *tcp;
	__u32 protocol, at;

	at = transport(ctx, data, end, &protocol);
	if (!at || protocol != IPPROTO_TCP)
		return XDP_PASS;
	tcp = data + at;
	if ((void *)&tcp->window > end || (tcp->flags & (SYN | ACK)) != SYN)
		return XDP_PASS;
	address(data, end, DESTINATION, target.words);
	target.port = bpf_ntohs(tcp->destination);
	syns = bpf_map_lookup_elem(&targets, &target);
	if (syns)
		__sync_fetch_and_add(syns, 1);
	else
		bpf_map_update_elem(&targets, &target, &first, BPF_NOEXIST);
	return XDP_PASS;
}
