// Longwire's own helpers: counts packets in the flow's state, spreads them over queues, and drops what is long.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "../../include/longwire.h"

enum { TOO_LONG = 3 };

struct state {
	__u64 packets;
	__u32 limit;
	__u32 last;
};

SEC("xdp")
int spread(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	__u8 addresses[8];
	__u32 hash;

	__sync_fetch_and_add(&state->packets, 1);
	state->last = bpf_xdp_get_buff_len(ctx);
	if (state->limit && state->last > state->limit)
		return lw_drop(TOO_LONG);
	if (bpf_xdp_load_bytes(ctx, 26, addresses, sizeof(addresses)) < 0)
		return XDP_PASS;
	hash = lw_hash(addresses, sizeof(addresses), 1);
	lw_mark(hash);
	lw_choose_queue(hash % 4);
	return hash & 0x80000000 ? lw_redirect_link(2) : XDP_PASS;
}
