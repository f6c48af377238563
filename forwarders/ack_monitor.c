// SPDX-License-Identifier: Apache-2.0 OR MIT
// ACK monitor: counts acknowledgements that a TCP connection repeats, by which its losses show.
//
// Key: per flow, the direction in which the acknowledgements go. IPv4 and IPv6. An acknowledgement is repeated if the packet has
// no data, no SYN, FIN or RST, and the same number as the one before (RFC 5681, section 2, but for the window, which is not compared).
//
// State, 12 bytes, zero at first.
//	 0	u32	the last acknowledgement number (written here)
//	 4	u32	how often it was repeated so far; three make a fast retransmit (written here)
//	 8	u32	repeated acknowledgements of the connection, all together (written here)
//
// Returns XDP_PASS.
//
// The paper (table 5): 12 bytes of state, 15 operations, 4 registers.
#include "forwarder.h"

struct state {
	__u32 last;
	__u32 run;
	__u32 repeats;
};

/* Where the IP packet ends by its own length, in bytes from the frame's beginning. */
static __always_inline __u32 ip_end(void *data)
{
	struct ipv6hdr *ip6 = data + ETH_HLEN;
	struct iphdr *ip = data + ETH_HLEN;

	if (ETHERTYPE(data) == bpf_htons(ETH_P_IP))
		return ETH_HLEN + bpf_ntohs(ip->tot_len);
	return ETH_HLEN + sizeof(*ip6) + bpf_ntohs(ip6->payload_len);
}

SEC("xdp")
int ack_monitor(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	void *data = DATA(ctx), *end = END(ctx);
	struct tcp *tcp;
	__u32 protocol, at, number;

	at = transport(ctx, data, end, &protocol);
	if (!at || protocol != IPPROTO_TCP)
		return XDP_PASS;
	tcp = data + at;
	if ((void *)(tcp + 1) > end || (tcp->flags & (FIN | SYN | RST | ACK)) != ACK)
		return XDP_PASS;
	number = bpf_ntohl(tcp->acknowledgement);
	if (number != state->last) {
		state->last = number;
		state->run = 0;
	} else if (at + (tcp->offset >> 4) * 4 == ip_end(data)) {
		__sync_fetch_and_add(&state->run, 1);
		__sync_fetch_and_add(&state->repeats, 1);
	}
	return XDP_PASS;
}
