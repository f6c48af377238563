// SPDX-License-Identifier: Apache-2.0 OR MIT
// SYN filter: drops TCP packets that ask for a connection (SYN without ACK), but for one in each interval. Connections that are there go on.
//
// Key: per flow, all packets to a server that is flooded. IPv4, with options too, and IPv6.
//
// State, 24 bytes, zero at first: then every SYN is dropped.
//	 0	u64	least time between two SYNs that pass, in nanoseconds; 0: none passes
//	 8	u64	time from which on the next passes (written here)
//	16	u32	SYNs seen, dropped ones too (written here), from which the control half has the rate
//	20	u32	SYNs dropped (written here)
//
// Returns XDP_DROP with reason 0; else XDP_PASS.
//
// Not one of the paper's: its control half has the SYN monitor's alarm and installs a filter.
#include "forwarder.h"

struct state {
	__u64 interval;
	__u64 next;
	__u32 seen;
	__u32 dropped;
};

LW_STATE(struct state);

SEC("xdp")
int syn_filter(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	void *data = DATA(ctx), *end = END(ctx);
	struct tcp *tcp;
	__u64 interval, now;
	__u32 protocol, at;

	at = transport(ctx, data, end, &protocol);
	if (!at || protocol != IPPROTO_TCP)
		return XDP_PASS;
	tcp = data + at;
	if ((void *)&tcp->window > end || (tcp->flags & (SYN | ACK)) != SYN)
		return XDP_PASS;
	__sync_fetch_and_add(&state->seen, 1);
	interval = state->interval;
	if (interval) {
		now = bpf_ktime_get_ns();
		if (now >= state->next) {
			state->next = now + interval;
			return XDP_PASS;
		}
	}
	__sync_fetch_and_add(&state->dropped, 1);
	return lw_drop(0);
}
