// SPDX-License-Identifier: Apache-2.0 OR MIT
// Minimal IP: decrements the TTL, makes the checksum fit, replaces the Ethernet header, and sends the packet out of a port.
//
// Key: general (ALL), once for each next hop, as the last forwarder. IPv4 and IPv6 (whose hop limit has no checksum).
//
// State, 24 bytes, zero at first: then nothing is done.
//	 0	12 bytes	the new Ethernet header's destination and source
//	12	u16		number of the port that leads to the next hop
//	14	u16		not 0 once the above is set
//	16	u64		packets forwarded (written here)
//
// Returns XDP_REDIRECT; XDP_PASS, with nothing changed, for what is full IP's: a TTL that would become 0, options, another protocol.
//
// The paper (table 5, IP--): 24 bytes of state, 32 operations, 2 registers.
#include "forwarder.h"

struct state {
	__be32 addresses[3];
	__u16 port;
	__u16 ready;
	__u64 forwarded;
};

static __always_inline int forward(struct state *state, void *data)
{
	__be32 *addresses = data;

	addresses[0] = state->addresses[0];
	addresses[1] = state->addresses[1];
	addresses[2] = state->addresses[2];
	__sync_fetch_and_add(&state->forwarded, 1);
	return bpf_redirect(state->port, 0);
}

SEC("xdp")
int minimal_ip(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	void *data = DATA(ctx), *end = END(ctx);
	struct ipv6hdr *ip6 = data + ETH_HLEN;
	struct iphdr *ip = data + ETH_HLEN;
	__u32 sum;

	if ((void *)(ip + 1) > end || !state->ready)
		return XDP_PASS;
	if (ETHERTYPE(data) == bpf_htons(ETH_P_IP)) {
		if (*(__u8 *)ip != IPV4_PLAIN || ip->ttl <= 1)
			return XDP_PASS;
		ip->ttl--;
		// The word of TTL and protocol is less by 0x0100: its complement is added (RFC 1624, equation 3).
		sum = (__u16)~ip->check + bpf_htons(0xfeff);
		ip->check = ~((sum & 0xffff) + (sum >> 16));
		return forward(state, data);
	}
	if (ETHERTYPE(data) != bpf_htons(ETH_P_IPV6) || (void *)(ip6 + 1) > end || ip6->hop_limit <= 1)
		return XDP_PASS;
	ip6->hop_limit--;
	return forward(state, data);
}
