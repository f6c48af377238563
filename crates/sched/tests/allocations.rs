//! Nothing is allocated once a scheduler has been made.

use longwire_packet::{CountingAllocator, allocations};
use longwire_sched::{Resource, SPECS, Scheduler, Settings};
use longwire_units::Nanos;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn packets_and_new_flows_allocate_nothing() {
    for spec in SPECS {
        let settings = Settings { flows: 100, packets: 300, ..Settings::default() };
        let mut scheduler = Scheduler::new(spec.name, &settings).unwrap();
        let before = allocations();
        let mut sent = 0;
        for n in 0..20_000u32 {
            // New flows come and old ones are evicted; queues and packet memory overflow at times.
            let key = if n % 3 == 0 { n / 50 } else { n % 7 };
            let _ = scheduler.enqueue(key, n, 60 + n % 1000, Nanos(n.into()));
            if n % 400 < 250 {
                continue;
            }
            for _ in 0..3 {
                if let Some(granted) = scheduler.dequeue(Resource::Processor) {
                    scheduler.processed(granted.ticket, Some(1000));
                    scheduler.feedback(granted.key, 1000);
                }
                sent += u32::from(scheduler.dequeue(Resource::Port(0)).is_some());
            }
        }
        assert_eq!(allocations() - before, 0, "{}", spec.name);
        assert!(sent > 5000 && scheduler.happened().recycled > 0, "{}: {sent}", spec.name);
    }
}
