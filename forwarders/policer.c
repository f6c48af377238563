// SPDX-License-Identifier: Apache-2.0 OR MIT
// Policer: drops what comes faster than a rate, beyond a burst: a token bucket, exact in integers.
//
// Key: per flow or general. Any packet. Its length is the frame's, from the Ethernet header on, without the check sequence.
//
// Tokens are billionths of a byte, so that a nanosecond at one byte a second is worth one: nothing is divided or rounded.
//
// State, 48 bytes, zero at first: then nothing is dropped.
//	 0	u64	rate, in bytes per second; 0: no limit
//	 8	s64	burst, in billionths of a byte: less than 2^62, 4.6 GB
//	16	u64	how long an empty bucket takes to be full, in nanoseconds: burst / rate, rounded up, so that rate times less than that is no
//			more than the burst. After that time it is full, whatever the product
//	24	s64	tokens in the bucket (written here; the control half sets it to the burst, so that it begins full)
//	32	u64	time of the last packet, in nanoseconds (written here)
//	40	u64	packets dropped (written here)
//
// Workers share the bucket: the time between two packets is credited by the one worker that moves the time on, so that none is
// credited twice. While others are between taking tokens and giving them back, a packet may be dropped that would have had some.
//
// Returns XDP_PASS, or XDP_DROP with reason 0.
//
// Not one of the paper's.
#include "forwarder.h"

enum { BILLION = 1000000000 };

struct state {
	__u64 rate;
	__s64 burst;
	__u64 fill;
	__s64 tokens;
	__u64 last;
	__u64 dropped;
};

LW_STATE(struct state);

static __always_inline void credit(struct state *state, __u64 now)
{
	__u64 last = state->last;
	__s64 more, tokens;

	// Another worker's packet may be later than this one.
	if ((__s64)(now - last) <= 0 || __sync_val_compare_and_swap(&state->last, last, now) != last)
		return;
	more = now - last >= state->fill ? state->burst : (__s64)((now - last) * state->rate);
	tokens = __sync_fetch_and_add(&state->tokens, more) + more;
	if (tokens > state->burst)
		__sync_fetch_and_add(&state->tokens, state->burst - tokens);
}

SEC("xdp")
int policer(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	void *data = DATA(ctx), *end = END(ctx);
	__s64 price = (__u64)(end - data) * BILLION;

	if (!state->rate)
		return XDP_PASS;
	credit(state, bpf_ktime_get_ns());
	if (__sync_fetch_and_add(&state->tokens, -price) >= price)
		return XDP_PASS;
	__sync_fetch_and_add(&state->tokens, price);
	__sync_fetch_and_add(&state->dropped, 1);
	return lw_drop(0);
}
