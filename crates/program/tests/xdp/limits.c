// Limits the rate of each source by a token bucket, keeps a heavy-hitter sketch, and samples what is left.
#include "parse.h"
#include "../../include/longwire.h"

struct bucket {
	__u64 tokens;
	__u64 last;
};

struct flow {
	__be32 from, to;
	__be16 from_port, to_port;
	__u8 proto;
	__u8 pad[3];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __be32);
	__type(value, struct bucket);
} buckets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__uint(value_size, 4 * 256 * sizeof(__u32));
} sketch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, __u32);
} ports SEC(".maps");

const volatile __u64 rate = 1000, burst = 15000;

static __noinline int allowed(struct bucket *bucket, __u32 bytes)
{
	__u64 now = bpf_ktime_get_ns(), more;

	if (!bucket)
		return 0;
	more = (now - bucket->last) * rate / 1000000;
	bucket->last = now;
	bucket->tokens = bucket->tokens + more > burst ? burst : bucket->tokens + more;
	if (bucket->tokens < bytes)
		return 0;
	bucket->tokens -= bytes;
	return 1;
}

static __noinline void count(struct flow *flow, __u32 *least)
{
	__u32 key = 0, *rows = bpf_map_lookup_elem(&sketch, &key);
	__u64 hash = lw_hash(flow, sizeof(*flow), 7);
	int row;

	if (!rows)
		return;
#pragma unroll
	for (row = 0; row < 4; row++) {
		__u32 *cell = &rows[row * 256 + (hash & 255)];

		*cell += 1;
		if (*cell < *least)
			*least = *cell;
		hash >>= 8;
	}
}

SEC("xdp")
int limit(struct xdp_md *ctx)
{
	void *data = DATA(ctx), *end = END(ctx);
	struct ethhdr *eth = data;
	struct iphdr *ip = (void *)(eth + 1);
	struct udphdr *udp = (void *)(ip + 1);
	struct bucket fresh = { .tokens = burst }, *bucket;
	struct flow flow = {};
	__u32 least = ~0u;

	if ((void *)(udp + 1) > end)
		return XDP_PASS;
	if (eth->h_proto != bpf_htons(ETH_P_IP))
		return XDP_PASS;
	flow.from = ip->saddr;
	flow.to = ip->daddr;
	flow.proto = ip->protocol;
	if (ip->protocol == IPPROTO_UDP || ip->protocol == IPPROTO_TCP) {
		flow.from_port = udp->source;
		flow.to_port = udp->dest;
	}
	bucket = bpf_map_lookup_elem(&buckets, &flow.from);
	if (!bucket) {
		fresh.last = bpf_ktime_get_ns();
		bpf_map_update_elem(&buckets, &flow.from, &fresh, BPF_ANY);
	} else if (!allowed(bucket, end - data)) {
		return lw_drop(1);
	}
	count(&flow, &least);
	if (least > 1000)
		lw_mark(least);
	if (bpf_get_prandom_u32() % 100 == 0)
		return bpf_redirect_map(&ports, 3, XDP_PASS);
	return XDP_PASS;
}
