// SPDX-License-Identifier: Apache-2.0 OR MIT
// SYN monitor: counts TCP packets that ask for a connection (SYN without ACK).
//
// Key: general (ALL), or all packets to a server. IPv4, with options too, and IPv6.
//
// State, 4 bytes, zero at first.
//	 0	u32	SYNs counted (written here); how many are too many is for the control half, which reads it at intervals
//
// Returns XDP_PASS.
//
// The paper (table 5): 4 bytes of state, 5 operations, no registers.
#include "forwarder.h"

struct state {
	__u32 syns;
};

LW_STATE(struct state);

SEC("xdp")
int syn_monitor(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	void *data = DATA(ctx), *end = END(ctx);
	struct tcp *tcp;
	__u32 protocol, at;

	at = transport(ctx, data, end, &protocol);
	if (!at || protocol != IPPROTO_TCP)
		return XDP_PASS;
	tcp = data + at;
	if ((void *)&tcp->window > end || (tcp->flags & (SYN | ACK)) != SYN)
		return XDP_PASS;
	__sync_fetch_and_add(&state->syns, 1);
	return XDP_PASS;
}
