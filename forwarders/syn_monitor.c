// SPDX-License-Identifier: Apache-2.0 OR MIT
// SYN monitor: counts TCP packets that ask for a connection (SYN without ACK), and raises an alarm when there are many.
//
// Key: general (ALL), or all packets to a server. IPv4, with options too, and IPv6.
//
// State, 12 bytes, zero at first: then it only counts. Its control half sets the count to 0 at the beginning of each interval, so
// that it is a rate.
//	 0	u32	SYNs counted (written here)
//	 4	u32	how many SYNs raise the alarm; 0: none do
//	 8	u32	the alarm: 1 once it was raised (written here, cleared by the control half)
//
// Returns XDP_PASS.
//
// The paper (table 5): 4 bytes of state, 5 operations, no registers; it counts only.
#include "forwarder.h"

struct state {
	__u32 syns;
	__u32 limit;
	__u32 alarm;
};

SEC("xdp")
int syn_monitor(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	void *data = DATA(ctx), *end = END(ctx);
	struct tcp *tcp;
	__u32 protocol, at, before;

	at = transport(ctx, data, end, &protocol);
	if (!at || protocol != IPPROTO_TCP)
		return XDP_PASS;
	tcp = data + at;
	if ((void *)&tcp->window > end || (tcp->flags & (SYN | ACK)) != SYN)
		return XDP_PASS;
	before = __sync_fetch_and_add(&state->syns, 1);
	if (state->limit && before + 1 >= state->limit)
		state->alarm = 1;
	return XDP_PASS;
}
