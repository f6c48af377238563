// Programs that go on with others.
#include "parse.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

int version4(struct xdp_md *ctx);
int version6(struct xdp_md *ctx);
int again(struct xdp_md *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 8);
	__uint(key_size, sizeof(__u32));
	__array(values, int(struct xdp_md *));
} parsers SEC(".maps") = {
	.values = {
		[2] = (void *)&version4,
		[3] = (void *)&version6,
		[5] = (void *)&again,
	},
};

static __always_inline void count(__u32 key)
{
	__u64 *value = bpf_map_lookup_elem(&counts, &key);

	if (value)
		*value += 1;
}

// Finds out what the packet is; what is neither, or of which there is no program, goes on here.
SEC("xdp")
int first(struct xdp_md *ctx)
{
	__u8 *data = DATA(ctx), *end = END(ctx);

	count(0);
	if (data + 14 > end)
		return XDP_DROP;
	if (data[12] == 8)
		bpf_tail_call(ctx, &parsers, 2);
	else if (data[12] == 0x86)
		bpf_tail_call(ctx, &parsers, data[13] == 0xdd ? 3 : 4);
	else
		bpf_tail_call(ctx, &parsers, data[13]);
	count(3);
	data = DATA(ctx);
	end = END(ctx);
	if (data + 2 > end)
		return XDP_DROP;
	data[1] = 0x99;
	return XDP_PASS;
}

SEC("xdp")
int version4(struct xdp_md *ctx)
{
	__u8 *data = DATA(ctx), *end = END(ctx);

	count(1);
	if (data + 34 > end)
		return XDP_DROP;
	data[0] = data[14];
	return XDP_TX;
}

// Cuts off the Ethernet header and goes on with what there is not.
SEC("xdp")
int version6(struct xdp_md *ctx)
{
	count(2);
	if (bpf_xdp_adjust_head(ctx, 14))
		return XDP_ABORTED;
	bpf_tail_call(ctx, &parsers, 7);
	return XDP_PASS;
}

// Goes on with itself, as often as may be.
SEC("xdp")
int again(struct xdp_md *ctx)
{
	count(2);
	bpf_tail_call(ctx, &parsers, 5);
	return XDP_TX;
}

char _license[] SEC("license") = "GPL";
