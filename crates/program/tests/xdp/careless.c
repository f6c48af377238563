// One program for each of the mistakes that are made most.
#include "parse.h"

SEC("xdp")
int unchecked(struct xdp_md *ctx)
{
	return ((__u8 *)DATA(ctx))[9];
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

SEC("xdp")
int not_compared(struct xdp_md *ctx)
{
	__u32 key = 1;
	__u64 *counter = bpf_map_lookup_elem(&counters, &key);

	*counter += 1;
	return XDP_PASS;
}

SEC("xdp")
int forever(struct xdp_md *ctx)
{
	__u32 dice;

	// Until a six.
	do {
		dice = bpf_get_prandom_u32() % 6;
	} while (dice != 5);
	return XDP_PASS;
}

SEC("xdp")
int beyond(struct xdp_md *ctx)
{
	__u8 table[16] = { 1, 2, 3 };

	bpf_xdp_load_bytes(ctx, 0, table, 8);
	return table[bpf_get_prandom_u32() & 31];
}

SEC("xdp")
int moved(struct xdp_md *ctx)
{
	__u8 *data = DATA(ctx), *end = END(ctx);

	if (data + 20 > end || bpf_xdp_adjust_head(ctx, 4))
		return XDP_DROP;
	return data[9];
}
