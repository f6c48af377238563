// SPDX-License-Identifier: Apache-2.0 OR MIT
// Balancer: spreads flows over links. Packets of a flow (addresses, protocol, ports) take the same link and stay in order; each bears the
// link's number and one more as its mark, for rules and programs further on.
//
// Key: per flow or general. IPv4 and IPv6; fragments go by their addresses and protocol. It is installed with links.
//
// State, 16 bytes, zero at first: then nothing is done.
//	 0	u32	over how many of its links, the first ones
//	 4	u32	the seed of the hash
//	 8	u64	packets that were spread (written here)
//
// Returns XDP_PASS: packets are routed, and take the link that was chosen where the route leads to its beginning.
//
// Not one of the paper's.
#include "forwarder.h"

struct state {
	__u32 links;
	__u32 seed;
	__u64 spread;
};

LW_STATE(struct state);

struct flow {
	__be32 source[4], destination[4];
	__be32 ports;
	__u32 protocol;
};

SEC("xdp")
int balancer(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	void *data = DATA(ctx), *end = END(ctx);
	struct udp *udp = data;
	struct flow flow = {};
	__u32 protocol, start, link;

	if (!state->links || data + ETH_HLEN + sizeof(struct iphdr) > end)
		return XDP_PASS;
	if (ETHERTYPE(data) != bpf_htons(ETH_P_IP) && ETHERTYPE(data) != bpf_htons(ETH_P_IPV6))
		return XDP_PASS;
	address(data, end, SOURCE, flow.source);
	address(data, end, DESTINATION, flow.destination);
	start = whole(ctx, data, end, &protocol);
	flow.protocol = protocol;
	if (start && (protocol == IPPROTO_TCP || protocol == IPPROTO_UDP)) {
		udp = data + start;
		// Both ports at once.
		if ((void *)(udp + 1) <= end)
			flow.ports = *(__be32 *)udp;
	}
	link = (__u32)lw_hash(&flow, sizeof(flow), state->seed) % state->links;
	lw_mark(link + 1);
	lw_choose_link(link);
	__sync_fetch_and_add(&state->spread, 1);
	return XDP_PASS;
}
