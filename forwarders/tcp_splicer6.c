// SPDX-License-Identifier: Apache-2.0 OR MIT
// TCP splicer for IPv6: tcp_splicer.c with addresses of 16 bytes. Extension headers can't be spliced.
//
// Key: per flow. It is installed twice, once for each direction.
//
// State, 48 bytes, zero at first: then nothing is done.
//	 0	16 bytes	new source address
//	16	16 bytes	new destination address
//	32	2 bytes		new source port, as in the header
//	34	2 bytes		new destination port, as in the header; 0: not spliced yet. With a new source port, it is about to be: packets
//				with data or FIN are dropped and will be sent again
//	36	u32		what is added to the sequence number
//	40	u32		what is added to the acknowledgement number
//	44	u8		which of the flags FIN (1) and RST (4) the last packet had that had any (written here)
//	45	u8		0
//	46	u8		by how many bits the window is shifted to the left, 0 to 14
//	47	u8		by how many it is then shifted to the right, 0 to 14: of the two, one is 0
//
// Returns XDP_PASS; XDP_DROP with reason 0 for data of a connection that is about to be spliced. A SYN, and what can't be spliced, is not
// changed, and goes on to the proxy.
//
// Not one of the paper's, whose splicer is for IPv4.
#include "forwarder.h"

struct state {
	__be32 addresses[8];
	__be16 source_port, destination_port;
	__u32 sequence, acknowledgement;
	__u8 ended, zero;
	__u16 shifts;
};

LW_STATE(struct state);

/* Whether a segment takes numbers of its connection: it has data, or ends its direction. */
static __always_inline int advances(struct ipv6hdr *ip, struct tcp *tcp)
{
	return tcp->flags & FIN || bpf_ntohs(ip->payload_len) > (tcp->offset >> 4) * 4;
}

SEC("xdp")
int tcp_splicer6(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	void *data = DATA(ctx), *end = END(ctx);
	struct ipv6hdr *ip = data + ETH_HLEN;
	struct tcp *tcp = (void *)(ip + 1);
	__be32 *addresses = (__be32 *)&ip->saddr, ports, sequence, acknowledgement;
	__u64 difference = 0;
	__be16 window;
	int i;

	if ((void *)(tcp + 1) > end || ETHERTYPE(data) != bpf_htons(ETH_P_IPV6) || ip->nexthdr != IPPROTO_TCP)
		return XDP_PASS;
	if (tcp->flags & SYN)
		return XDP_PASS;
	ports = *(__be32 *)&state->source_port;
	// A destination port is never 0.
	if (!state->destination_port)
		return ports && advances(ip, tcp) ? lw_drop(0) : XDP_PASS;

#pragma unroll
	for (i = 0; i < 8; i++) {
		difference += (__u64)state->addresses[i] - addresses[i];
		addresses[i] = state->addresses[i];
	}
	sequence = bpf_htonl(bpf_ntohl(tcp->sequence) + state->sequence);
	acknowledgement = bpf_htonl(bpf_ntohl(tcp->acknowledgement) + state->acknowledgement);
	window = scaled(tcp->window, state->shifts);
	difference += (__u64)ports - *(__be32 *)&tcp->source;
	difference += (__u64)sequence - tcp->sequence;
	difference += (__u64)acknowledgement - tcp->acknowledgement;
	difference += (__u64)window - tcp->window;
	*(__be32 *)&tcp->source = ports;
	tcp->sequence = sequence;
	tcp->acknowledgement = acknowledgement;
	tcp->window = window;
	tcp->check = adjusted(tcp->check, difference);

	if (tcp->flags & (FIN | RST))
		state->ended = tcp->flags & (FIN | RST);
	return XDP_PASS;
}
