// SPDX-License-Identifier: Apache-2.0 OR MIT
// Minimal IP: decrements the TTL, makes the checksum fit, replaces the Ethernet header, and sends the packet out of a port.
//
// Key: general (ALL), once for each next hop, as the last forwarder. IPv4 and IPv6 (whose hop limit has no checksum).
//
// State, 16 bytes, zero at first: then nothing is done.
//	 0	12 bytes	the new Ethernet header's destination and source
//	12	u32		1 + number of the port that leads to the next hop; 0: nothing is set yet
//
// Returns XDP_REDIRECT; XDP_PASS, with nothing changed, for what is full IP's: a TTL that would become 0, options, another protocol.
//
// The paper (table 5, IP--): 24 bytes of state, 32 operations, 2 registers.
#include "forwarder.h"

struct state {
	__be32 addresses[3];
	__u32 way;
};

LW_STATE(struct state);

static __always_inline int forward(struct state *state, __u32 way, void *data)
{
	__be32 *addresses = data;

	addresses[0] = state->addresses[0];
	addresses[1] = state->addresses[1];
	addresses[2] = state->addresses[2];
	return bpf_redirect(way - 1, 0);
}

SEC("xdp")
int minimal_ip(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	void *data = DATA(ctx), *end = END(ctx);
	struct ipv6hdr *ip6 = data + ETH_HLEN;
	struct iphdr *ip = data + ETH_HLEN;
	__u32 way = state->way, sum;

	if ((void *)(ip + 1) > end || !way)
		return XDP_PASS;
	if (ETHERTYPE(data) == bpf_htons(ETH_P_IP)) {
		if (*(__u8 *)ip != IPV4_PLAIN || ip->ttl <= 1)
			return XDP_PASS;
		ip->ttl--;
		// The word of TTL and protocol is less by 0x0100: what is added is the complement of that (RFC 1624, equation 3).
		sum = (__u16)~ip->check + bpf_htons(0xfeff);
		ip->check = ~((sum & 0xffff) + (sum >> 16));
		return forward(state, way, data);
	}
	if (ETHERTYPE(data) != bpf_htons(ETH_P_IPV6) || (void *)(ip6 + 1) > end || ip6->hop_limit <= 1)
		return XDP_PASS;
	ip6->hop_limit--;
	return forward(state, way, data);
}
