// SPDX-License-Identifier: Apache-2.0 OR MIT
// Port filter: drops TCP and UDP packets that are addressed to a port in one of five ranges.
//
// Key: general (ALL). IPv4, with options too, and IPv6, with up to eight extension headers. A fragment that is not the first has no port and is
// passed; without its first fragment it is worth nothing. What may have a port that can't be seen is dropped, so that nothing gets by: IPv6
// with more extension headers, or that ends within them, and TCP and UDP that end before their ports.
//
// State, 20 bytes, zero at first: then nothing else is dropped. Five times
//	 0	u16	how many ports the range has; 0: it is not used
//	 2	u16	its first port
//
// Returns XDP_DROP, with the number of the first such range (0 to 4) as reason, or 5 if its port can't be seen; else XDP_PASS.
//
// The paper (table 5): 20 bytes of state, 26 operations, 2 registers.
#include "forwarder.h"

enum { RANGES = 5, HIDDEN = 5 };

struct state {
	struct range {
		__u16 ports, first;
	} ranges[RANGES];
};

LW_STATE(struct state);

/* Drops the packet if its port is in this range. The number is loaded only then: the compiler would have it ready on the way past every range. */
#define REFUSE(number)						\
	do {							\
		range = ranges[number];				\
		if (port - range < range << 16) {		\
			asm volatile("%0 = " #number : "=r"(found)); \
			return lw_drop(found);			\
		}						\
	} while (0)

SEC("xdp")
int port_filter(struct xdp_md *ctx)
{
	void *data = DATA(ctx), *end = END(ctx);
	struct udp *header;
	__u32 protocol, at, port, range, found, *ranges;

	at = transport(ctx, data, end, &protocol);
	if (protocol == UNSEEN)
		return lw_drop(HIDDEN);
	if (!at || (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP))
		return XDP_PASS;
	header = data + at;
	if ((void *)&header->length > end)
		return lw_drop(HIDDEN);
	// The port above, ones below, from which no count borrows: less a range, it is the port's place in the range above.
	port = bpf_ntohs(header->destination) << 16 | 0xffff;
	// A range is compared as one number.
	ranges = lw_flow_state(sizeof(struct state));
	REFUSE(0);
	REFUSE(1);
	REFUSE(2);
	REFUSE(3);
	REFUSE(4);
	return XDP_PASS;
}
