// Maps in maps.
#include "parse.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} small SEC(".maps"), large SEC(".maps");

struct counts {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 4);
	__uint(key_size, sizeof(__u32));
	__array(values, struct counts);
} by_number SEC(".maps") = {
	.values = { [0] = (void *)&small, [2] = (void *)&large },
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, 4);
	__uint(key_size, sizeof(__u32));
	__array(values, struct counts);
} by_key SEC(".maps") = {
	.values = { [1] = (void *)&large },
};

static __always_inline int count(void *map, __u32 key)
{
	__u64 *value;

	if (!map)
		return XDP_DROP;
	value = bpf_map_lookup_elem(map, &key);
	if (!value)
		return XDP_TX;
	*value += key + 1;
	return XDP_PASS;
}

SEC("xdp")
int arrays(struct xdp_md *ctx)
{
	__u8 *data = DATA(ctx), *end = END(ctx);
	__u32 number;

	if (data + 24 > end)
		return XDP_DROP;
	number = data[22] & 7;
	return count(bpf_map_lookup_elem(&by_number, &number), data[23] & 7);
}

SEC("xdp")
int hashes(struct xdp_md *ctx)
{
	__u8 *data = DATA(ctx), *end = END(ctx);
	__u64 value = 5;
	__u32 key;
	void *map;

	if (data + 24 > end)
		return XDP_DROP;
	key = data[22] & 1;
	map = bpf_map_lookup_elem(&by_key, &key);
	if (!map)
		map = &small;
	key = data[23] & 7;
	return bpf_map_update_elem(map, &key, &value, 0) ? XDP_TX : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
