// SPDX-License-Identifier: Apache-2.0 OR MIT
// TCP splicer: makes one connection of two. A proxy that has read enough of a connection lets its packets go on by
// themselves, with addresses, ports and sequence numbers of the connection on the other side.
//
// Key: per flow. It is installed twice, once for each direction, by the proxy, which is its control half. IPv4 without options and
// fragments. Both connections have to be without SACK, time stamps and window scaling, or with the same scaling: options are not changed.
//
// With c and s for the initial sequence numbers of the client and of the server, and p and q for the proxy's towards the client
// and towards the server, and r bytes read from the client and w written to it by the proxy itself, r' written to the server and w' read from it:
//	client to server: sequence + (q + r') − (c + r), acknowledgement + (s + w') − (p + w)
//	server to client: sequence + (p + w) − (s + w'), acknowledgement + (c + r) − (q + r')
//
// State, 24 bytes, zero at first: then nothing is done.
//	 0	4 bytes		new source address
//	 4	4 bytes		new destination address; 0.0.0.0: not spliced yet
//	 8	2 bytes		new source port, as in the header
//	10	2 bytes		new destination port, as in the header
//	12	u32		what is added to the sequence number
//	16	u32		what is added to the acknowledgement number
//	20	u32		flags of FIN (1) and RST (4) packets that came by (written here)
//
// Returns XDP_PASS. A SYN, and what can't be spliced, is not changed, and goes on to the proxy.
//
// The paper (table 5): 24 bytes of state, 45 operations, 7 registers.
#include "forwarder.h"

struct state {
	__be32 source, destination;
	__be16 source_port, destination_port;
	__u32 sequence, acknowledgement;
	__u32 ended;
};

SEC("xdp")
int tcp_splicer(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	void *data = DATA(ctx), *end = END(ctx);
	struct iphdr *ip = data + ETH_HLEN;
	struct tcp *tcp = (void *)(ip + 1);
	__be32 *addresses, *ports, next, acknowledged, new_ports;
	__u64 changed, rewritten;

	if ((void *)(tcp + 1) > end || ETHERTYPE(data) != bpf_htons(ETH_P_IP) || *(__u8 *)ip != IPV4_PLAIN)
		return XDP_PASS;
	if (ip->protocol != IPPROTO_TCP || ip->frag_off & bpf_htons(IPV4_OFFSET | IPV4_MORE))
		return XDP_PASS;
	if (!state->destination || tcp->flags & SYN)
		return XDP_PASS;

	addresses = &ip->saddr;
	changed = without32(addresses[0]) + state->source + without32(addresses[1]) + state->destination;
	addresses[0] = state->source;
	addresses[1] = state->destination;
	ip->check = adjusted(ip->check, changed);

	ports = (__be32 *)&tcp->source;
	new_ports = *(__be32 *)&state->source_port;
	next = bpf_htonl(bpf_ntohl(tcp->sequence) + state->sequence);
	acknowledged = bpf_htonl(bpf_ntohl(tcp->acknowledgement) + state->acknowledgement);
	rewritten = without32(*ports) + new_ports + without32(tcp->sequence) + next;
	rewritten += without32(tcp->acknowledgement) + acknowledged;
	*ports = new_ports;
	tcp->sequence = next;
	tcp->acknowledgement = acknowledged;
	tcp->check = adjusted(tcp->check, changed + rewritten);

	if (tcp->flags & (FIN | RST))
		__sync_fetch_and_or(&state->ended, tcp->flags & (FIN | RST));
	return XDP_PASS;
}
