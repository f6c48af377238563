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

LW_STATE(struct state);

/* Four bytes of either header of IP: the total length of IPv4 comes first in it, the payload's of IPv6 last. */
#define LENGTHS(data) (*(__be32 *)((data) + 16))

/* How long the IP packet is, less what is before the header of this place, in bytes. */
static __always_inline __u32 ip_length(void *data, __u32 *place)
{
	__be32 lengths = LENGTHS(data);

	*place -= ETH_HLEN;
	// Of these the compiler knows nothing from here on: it would make two branches of one.
	asm volatile("" : "+r"(*place), "+r"(lengths));
	if (ETHERTYPE(data) != bpf_htons(ETH_P_IP)) {
		*place -= sizeof(struct ipv6hdr);
		lengths >>= 16;
		asm volatile("" : "+r"(lengths));
	}
	return bpf_ntohs((__u16)lengths);
}

SEC("xdp")
int ack_monitor(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	// Behind IPv4's options and IPv6's extension headers: where it begins is above, what it is below.
	__s32 found = lw_transport(ctx);
	void *data = DATA(ctx), *end = END(ctx);
	struct tcp *tcp;
	__u32 at, number;

	// Its lengths are in the first 20 bytes of either header of IP.
	if (data + ETH_HLEN + sizeof(struct iphdr) > end)
		return XDP_PASS;
	if (found < 1 << 16 || (__u8)found != IPPROTO_TCP)
		return XDP_PASS;
	at = found >> 16;
	tcp = data + at;
	if ((void *)(tcp + 1) > end || (tcp->flags & (FIN | SYN | RST | ACK)) != ACK)
		return XDP_PASS;
	number = bpf_ntohl(tcp->acknowledgement);
	if (number != state->last) {
		state->last = number;
		state->run = 0;
		return XDP_PASS;
	}
	at += tcp->offset >> 4 << 2;
	if (ip_length(data, &at) == at) {
		__sync_fetch_and_add(&state->run, 1);
		__sync_fetch_and_add(&state->repeats, 1);
	}
	return XDP_PASS;
}
