// Functions that bpf_loop calls again and again.
#include "parse.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

struct walk {
	__u8 *at;
	__u8 *end;
	__u32 sum;
	__u32 rounds;
};

static long add_byte(__u32 index, struct walk *walk)
{
	if (walk->at + 1 > walk->end)
		return 1;
	walk->sum += *walk->at ^ index;
	walk->at++;
	return 0;
}

// Adds up at most 100 bytes of the packet, and puts the sum into its first ones.
SEC("xdp")
int total(struct xdp_md *ctx)
{
	__u8 *data = DATA(ctx), *end = END(ctx);
	struct walk walk = { .at = data, .end = end };
	long rounds = bpf_loop(100, add_byte, &walk, 0);

	if (data + 8 > end)
		return XDP_DROP;
	*(__u32 *)data = walk.sum;
	*(__u32 *)(data + 4) = rounds;
	return XDP_PASS;
}

static long count(__u32 index, void *unused)
{
	__u32 key = index & 15;
	__u64 *value = bpf_map_lookup_elem(&counts, &key);

	if (value)
		*value += index;
	return 0;
}

// As often as a byte of the packet says.
SEC("xdp")
int tally(struct xdp_md *ctx)
{
	__u8 *data = DATA(ctx), *end = END(ctx);

	if (data + 24 > end)
		return XDP_DROP;
	return bpf_loop(data[23] & 31, count, 0, 0) > 20 ? XDP_TX : XDP_PASS;
}

static long inner(__u32 index, __u32 *sum)
{
	*sum += index;
	return 0;
}

static long outer(__u32 index, __u32 *sum)
{
	if (*sum > 30)
		return 1;
	*sum += bpf_loop(index, inner, sum, 0);
	return 0;
}

// A loop in a loop.
SEC("xdp")
int nested(struct xdp_md *ctx)
{
	__u8 *data = DATA(ctx), *end = END(ctx);
	__u32 sum = 0;
	long rounds = bpf_loop(10, outer, &sum, 0);

	if (data + 8 > end)
		return XDP_DROP;
	*(__u32 *)data = sum;
	*(__u32 *)(data + 4) = rounds;
	return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
