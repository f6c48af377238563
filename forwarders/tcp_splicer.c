// SPDX-License-Identifier: Apache-2.0 OR MIT
// TCP splicer: makes one connection of two. A proxy that has read enough of a connection lets its packets go on by
// themselves, with addresses, ports and sequence numbers of the connection on the other side.
//
// Key: per flow, all of addresses and ports. It is installed twice, once for each direction, by the proxy, which is its control half. IPv4 without options and
// fragments; tcp_splicer6 is for IPv6. Both connections have to be without SACK and time stamps: options are not changed. A sender's window is
// scaled as it has said to the proxy, and understood as the proxy has said to the receiver (RFC 7323, section 2): if these differ, it has to be
// tcp_splicer_scaled, which changes windows. What does not come out even there is rounded down, so that nobody sends more than there is room for.
//
// With c and s for the initial sequence numbers of the client and of the server, and p and q for the proxy's towards the client
// and towards the server, and r bytes read from the client and w written to it by the proxy itself, r' written to the server and w' read from it:
//	client to server: sequence + (q + r') − (c + r), acknowledgement + (s + w') − (p + w)
//	server to client: sequence + (p + w) − (s + w'), acknowledgement + (c + r) − (q + r')
//
// Checksums are not summed up again. By how much each sum of 16-bit words in one's complement changes is the same for all segments of a flow, but for
// numbers that wrap (each less by 1, found here), and the control half writes it:
//	header: the new addresses less the old ones
//	segment: as much, the new ports less the old ones, and both halves of what is added to each of the two numbers
// as a number from 1 to 65535, of which 65535 means that nothing changes. The new checksum is the old one less that, and 0 where it could be 65535
// (RFC 1624, sections 3 and 4).
//
// State, 28 bytes, zero at first: then nothing is done.
//	 0	4 bytes		new source address; without the changes of checksums the connection is about to be spliced: packets with data or FIN are
//				dropped and will be sent again, so that the proxy reads no more, and all it has written is acknowledged
//	 4	4 bytes		new destination address
//	 8	2 bytes		new source port, as in the header
//	10	2 bytes		new destination port, as in the header
//	12	u32		what is added to the sequence number
//	16	u32		what is added to the acknowledgement number
//	20	2 bytes		by how much the sum of a segment changes, in network order
//	22	2 bytes		by how much the sum of a header changes, in network order; both 0: not spliced yet
//	24	u8		which of the flags FIN (1) and RST (4) the last packet had that had any (written here)
//	25	u8		0
//	26	u8		by how many bits tcp_splicer_scaled shifts the window to the left, 0 to 14
//	27	u8		by how many it then shifts it to the right, 0 to 14: of the two, one is 0
//
// Returns XDP_PASS; XDP_DROP with reason 0 for data of a connection that is about to be spliced. A SYN, and what can't be spliced, is not
// changed, and goes on to the proxy.
//
// The paper (table 5): 24 bytes of state, 45 operations, 7 registers.
#include "forwarder.h"

/* Registers of the paper's processor: four bytes from the Ethernet header's last field on, from the IPv4 header's fragment field on, and from the second
 * half of the acknowledgement number on, which is read anew each time (what is kept for later has to be copied).
 */
#define ETHERTYPE_ON(data) (*(__be32 *)((data) + 12))
#define FRAGMENT_ON(data) (*(__be32 *)((data) + 20))
#define FLAGS_UP_TO(data) (*(__be32 *)((data) + 44))

/* Both addresses of the IPv4 header. */
#define ADDRESSES(data) (*(__u64 *)((data) + 26))

/* Of this number the compiler knows nothing from here on, so that conditions stay branches: without them it needs two instructions more for each. */
#define OPAQUE(number) asm volatile("" : "+r"(number))

struct state {
	__be32 source, destination;
	__u32 ports;
	__u32 sequence, acknowledgement;
	__u32 sums;
	__u8 ended, zero;
	__u16 shifts;
};

LW_STATE(struct state);

/* Whether a segment takes numbers of its connection: it has data, or ends its direction. */
static __always_inline int advances(struct iphdr *ip, struct tcp *tcp)
{
	return tcp->flags & FIN || bpf_ntohs(ip->tot_len) > sizeof(*ip) + (tcp->offset >> 4) * 4;
}

/* A checksum that is out of its range by less than one round: 0 to 65534, as 65535 is 0. */
static __always_inline __s64 settled(__s64 check)
{
	if (check < 0) {
		check += 0xffff;
		OPAQUE(check);
	} else if (check >= 0xffff) {
		check -= 0xffff;
		OPAQUE(check);
	}
	return check;
}

SEC("xdp")
int tcp_splicer(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	void *data = DATA(ctx), *end = END(ctx);
	struct iphdr *ip = data + ETH_HLEN;
	struct tcp *tcp = (void *)(ip + 1);
	__u32 sums, added, number, ends;
	__s64 check;
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
	if (FLAGS_UP_TO(data) & bpf_htonl(SYN))
		return XDP_PASS;
	sums = state->sums;
	if (!sums) {
		barrier();
		return state->source && advances(ip, tcp) ? lw_drop(0) : XDP_PASS;
	}

	// At most 65534 already: a change is at least 1.
	check = (__s64)ip->check - (sums >> 16);
	if (check < 0) {
		check += 0xffff;
		OPAQUE(check);
	}
	ip->check = check;
	ADDRESSES(data) = *(__u64 *)state;
	*(__u32 *)&tcp->source = state->ports;

	// A sum that is less by 1 makes a checksum that is more by 1, which is 256 as this machine reads it.
	check = (__s64)tcp->check - (sums & 0xffff);
	added = state->sequence;
	number = bpf_ntohl(tcp->sequence) + added;
	OPAQUE(number);
	if (number < added) {
		check += 256;
		OPAQUE(check);
	}
	tcp->sequence = bpf_htonl(number);
	added = state->acknowledgement;
	number = bpf_ntohl(tcp->acknowledgement) + added;
	OPAQUE(number);
	if (number < added) {
		check += 256;
		OPAQUE(check);
	}
	tcp->acknowledgement = bpf_htonl(number);
#ifdef SCALED
	window = scaled(tcp->window, state->shifts);
	check = settled(check + tcp->window - window);
	tcp->window = window;
#endif
	tcp->check = settled(check);

	ends = FLAGS_UP_TO(data) & bpf_htonl(FIN | RST);
	if (ends)
		state->ended = ends >> 24;
	return XDP_PASS;
}
