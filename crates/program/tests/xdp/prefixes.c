// Prefixes that packets add, change and take away, and what is found of them: longest match, lengths beyond, a map that is full.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct key {
	__u32 length;
	__u8 bits[4];
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__type(key, struct key);
	__type(value, __u32);
	__uint(max_entries, 64);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} routes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __s64);
	__uint(max_entries, 4);
} seen SEC(".maps");

static __always_inline void note(__u32 place, __s64 what)
{
	__s64 *sum = bpf_map_lookup_elem(&seen, &place);

	if (sum)
		*sum = *sum * 31 + what;
}

SEC("xdp")
int prefixes(struct xdp_md *ctx)
{
	__u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct key key = {};
	__u32 value, *found;

	if (data + 38 > end)
		return XDP_DROP;
	/* The longest of these lengths is one too many. */
	key.length = data[23] % 34;
	key.bits[0] = data[29] & 3;
	key.bits[1] = data[35];
	value = key.length << 8 | data[29];
	if (data[37] & 1)
		note(0, bpf_map_delete_elem(&routes, &key));
	else
		note(1, bpf_map_update_elem(&routes, &key, &value, data[37] >> 1 & 3));
	key.length = data[17] % 34;
	key.bits[1] = data[22];
	found = bpf_map_lookup_elem(&routes, &key);
	note(2, found ? *found : -1);
	return XDP_PASS;
}
