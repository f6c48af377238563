// SPDX-License-Identifier: Apache-2.0 OR MIT
// TCP splicer: makes one connection of two. A proxy that has read enough of a connection lets its packets go on by
// themselves, with addresses, ports and sequence numbers of the connection on the other side.
//
// Key: per flow. It is installed twice, once for each direction, by the proxy, which is its control half. IPv4 without options and
// fragments; tcp_splicer6 is for IPv6. Both connections have to be without SACK and time stamps: options are not changed. A sender's window is
// scaled as it has said to the proxy, and understood as the proxy has said to the receiver (RFC 7323, section 2): if these differ, it has to be
// tcp_splicer_scaled, which changes windows. What does not come out even there is rounded down, so that nobody sends more than there is room for.
//
// With c and s for the initial sequence numbers of the client and of the server, and p and q for the proxy's towards the client
// and towards the server, and r bytes read from the client and w written to it by the proxy itself, r' written to the server and w' read from it:
//	client to server: sequence + (q + r') − (c + r), acknowledgement + (s + w') − (p + w)
//	server to client: sequence + (p + w) − (s + w'), acknowledgement + (c + r) − (q + r')
//
// State, 24 bytes, zero at first: then nothing is done.
//	 0	4 bytes		new source address
//	 4	4 bytes		new destination address; 0.0.0.0: not spliced yet. With a new source address, it is about to be: packets with
//				data or FIN are dropped and will be sent again, so that the proxy reads no more, and all it has written is acknowledged
//	 8	2 bytes		new source port, as in the header
//	10	2 bytes		new destination port, as in the header
//	12	u32		what is added to the sequence number
//	16	u32		what is added to the acknowledgement number
//	20	u8		which of the flags FIN (1) and RST (4) the last packet had that had any (written here)
//	21	u8		0
//	22	u8		by how many bits tcp_splicer_scaled shifts the window to the left, 0 to 14
//	23	u8		by how many it then shifts it to the right, 0 to 14: of the two, one is 0
//
// Returns XDP_PASS; XDP_DROP with reason 0 for data of a connection that is about to be spliced. A SYN, and what can't be spliced, is not
// changed, and goes on to the proxy.
//
// The paper (table 5): 24 bytes of state, 45 operations, 7 registers.
#include "forwarder.h"

/* Four bytes from the Ethernet header's last field on, and from the IPv4 header's fragment field on. */
#define ETHERTYPE_ON(data) (*(__be32 *)((data) + 12))
#define FRAGMENT_ON(data) (*(__be32 *)((data) + 20))

struct state {
	__be32 source, destination;
	__be16 source_port, destination_port;
	__u32 sequence, acknowledgement;
	__u8 ended, zero;
	__u16 shifts;
};

/* Whether a segment takes numbers of its connection: it has data, or ends its direction. */
static __always_inline int advances(struct iphdr *ip, struct tcp *tcp)
{
	return tcp->flags & FIN || bpf_ntohs(ip->tot_len) > sizeof(*ip) + (tcp->offset >> 4) * 4;
}

SEC("xdp")
int tcp_splicer(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	void *data = DATA(ctx), *end = END(ctx);
	struct iphdr *ip = data + ETH_HLEN;
	struct tcp *tcp = (void *)(ip + 1);
	__be32 source, destination, ports, number, changed;
	__u64 difference;
#ifdef SCALED
	__be16 window;
#endif

	if ((void *)(tcp + 1) > end)
		return XDP_PASS;
	// Two fields in one load: type and first byte of the IPv4 header; fragment and protocol.
	if ((ETHERTYPE_ON(data) & bpf_htonl(0xffffff00)) != bpf_htonl(ETH_P_IP << 16 | IPV4_PLAIN << 8))
		return XDP_PASS;
	if ((FRAGMENT_ON(data) & bpf_htonl((IPV4_OFFSET | IPV4_MORE) << 16 | 0xff)) != bpf_htonl(IPPROTO_TCP))
		return XDP_PASS;
	destination = state->destination;
	if (tcp->flags & SYN)
		return XDP_PASS;
	if (!destination)
		return state->source && advances(ip, tcp) ? lw_drop(0) : XDP_PASS;

	source = state->source;
	difference = NOTHING + source - ip->saddr + destination - ip->daddr;
	ip->saddr = source;
	ip->daddr = destination;
	ip->check = folded(difference - ip->check);

	// What follows stays behind what was before: registers are few.
	barrier();
	ports = *(__be32 *)&state->source_port;
	difference = difference + ports - *(__be32 *)&tcp->source;
	*(__be32 *)&tcp->source = ports;
	number = tcp->sequence;
	changed = bpf_htonl(bpf_ntohl(number) + state->sequence);
	difference = difference + changed - number;
	tcp->sequence = changed;
	number = tcp->acknowledgement;
	changed = bpf_htonl(bpf_ntohl(number) + state->acknowledgement);
	difference = difference + changed - number;
	tcp->acknowledgement = changed;
#ifdef SCALED
	window = scaled(tcp->window, state->shifts);
	difference = difference + window - tcp->window;
	tcp->window = window;
#endif
	tcp->check = folded(difference - tcp->check);

	if (tcp->flags & (FIN | RST))
		state->ended = tcp->flags & (FIN | RST);
	return XDP_PASS;
}
