// Values with a lock.
#include "parse.h"

struct flow {
	__u32 packets;
	struct bpf_spin_lock lock;
	__u64 bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, struct flow);
} totals SEC(".maps");

static __always_inline void add(struct flow *flow, __u32 length)
{
	bpf_spin_lock(&flow->lock);
	flow->packets++;
	if (length > 60)
		flow->bytes += length;
	bpf_spin_unlock(&flow->lock);
}

SEC("xdp")
int account(struct xdp_md *ctx)
{
	__u8 *data = DATA(ctx), *end = END(ctx);
	struct flow fresh = { .packets = 7 };
	struct flow *flow;
	__u32 key;

	if (data + 30 > end)
		return XDP_DROP;
	key = data[29] & 3;
	flow = bpf_map_lookup_elem(&totals, &key);
	if (flow)
		add(flow, end - data);
	key = data[29];
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow) {
		bpf_map_update_elem(&flows, &key, &fresh, BPF_NOEXIST);
		return XDP_PASS;
	}
	add(flow, end - data);
	if (flow->packets > 9)
		bpf_map_update_elem(&flows, &key, &fresh, BPF_F_LOCK);
	return flow->packets > 8 ? XDP_TX : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
