// SPDX-License-Identifier: Apache-2.0 OR MIT
// DSCP marker: writes a differentiated services code point (RFC 2474). The two bits of ECN stay.
//
// Key: per flow or general. IPv4, with options too, and IPv6.
//
// State, 16 bytes, zero at first: then nothing is done.
//	 0	u32	the code point, 0 to 63; its low six bits count
//	 4	u32	not 0: mark
//	 8	u64	packets that were changed (written here)
//
// Returns XDP_PASS.
//
// Not one of the paper's.
#include "forwarder.h"

struct state {
	__u32 dscp;
	__u32 on;
	__u64 changed;
};

LW_STATE(struct state);

SEC("xdp")
int dscp_marker(struct xdp_md *ctx)
{
	struct state *state = lw_flow_state(sizeof(*state));
	void *data = DATA(ctx), *end = END(ctx);
	struct iphdr *ip = data + ETH_HLEN;
	__u32 dscp = state->dscp & 63;
	// Version, length and type of service of IPv4; version, traffic class and four bits of the flow label of IPv6.
	__be16 *word = (__be16 *)ip, old, new;

	if (!state->on || (void *)(ip + 1) > end)
		return XDP_PASS;
	old = *word;
	if (ETHERTYPE(data) == bpf_htons(ETH_P_IP))
		new = (old & ~bpf_htons(0x00fc)) | bpf_htons(dscp << 2);
	else if (ETHERTYPE(data) == bpf_htons(ETH_P_IPV6))
		new = (old & ~bpf_htons(0x0fc0)) | bpf_htons(dscp << 6);
	else
		return XDP_PASS;
	if (new == old)
		return XDP_PASS;
	*word = new;
	if (ETHERTYPE(data) == bpf_htons(ETH_P_IP))
		ip->check = adjusted(ip->check, (__u64)new - old);
	__sync_fetch_and_add(&state->changed, 1);
	return XDP_PASS;
}
