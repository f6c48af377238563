// SPDX-License-Identifier: Apache-2.0 OR MIT
// Wavelet dropper: of video that comes in layers, drops those from a cut-off on, which its control half sets by the measured rate.
//
// Key: per flow. UDP over IPv4 or IPv6. The first byte of a datagram's data is its packet's layer: 0 has the lowest frequencies and
// is never dropped. (The paper says nothing of the packets.)
//
// State, 8 bytes, zero at first: then nothing is dropped.
//	 0	u32	the first layer that is dropped; 0: none is
//	 4	u32	packets forwarded (written here), from which the control half has the rate
//
// Returns XDP_PASS, or XDP_DROP with reason 0.
//
// The paper (table 5): 8 bytes of state, 28 operations, 4 registers.
#include "forwarder.h"

struct state {
	__u32 cutoff;
	__u32 forwarded;
};

LW_STATE(struct state);

SEC("xdp")
int wavelet(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	void *data = DATA(ctx), *end = END(ctx);
	__u8 *layer;
	__u32 protocol, at;

	at = transport(ctx, data, end, &protocol);
	if (!at || protocol != IPPROTO_UDP)
		return XDP_PASS;
	layer = data + at + sizeof(struct udp);
	if ((void *)(layer + 1) > end)
		return XDP_PASS;
	if (state->cutoff && *layer >= state->cutoff)
		return lw_drop(0);
	__sync_fetch_and_add(&state->forwarded, 1);
	return XDP_PASS;
}
