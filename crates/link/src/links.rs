//! All links of one worker: the interface for the engine.

use crate::background::Background;
use crate::blocks::Blocks;
use crate::chain::{AnyJudge, Chain};
use crate::counters::LinkStats;
use crate::delay::{Delay, before_queue};
use crate::fate::Arrival;
use crate::fifo::Fifo;
use crate::has;
use crate::impair::independent::Independent;
use crate::link::{Link, Surroundings};
use crate::medium::Medium;
use crate::profile::{Loss, Profile};
use crate::queue::Queue;
use crate::rare::Rare;
use crate::registry::LinkConfig;
use crate::transmit::Transmit;
use longwire_block::{Block, Dice, DropReason, Spec, Values};
use longwire_packet::{Handle, Pool, huge_vec, prefetch_element};
use longwire_units::{Histogram, Nanos};
use std::sync::Arc;

/// Number of recently added link profiles that are remembered.
const RECENT: usize = 16;

/// Place of media in the order of one time: after all links, before the deadlines of nodes, which the engine
/// places last but one before its ports.
const MEDIUM_PLACE: u32 = (1 << 31) - 3;

/// The links of a worker, by index. Made before the run; afterwards only the blocks of a plain link at its
/// first drop, train or change, and drop counters, are allocated.
#[derive(Default)]
pub struct Links {
    pub(crate) links: Vec<Link>,
    /// Their places in the plan.
    pub(crate) places: Vec<u32>,
    /// Packets that left later than tolerated, by link.
    pub(crate) late: Vec<u32>,
    /// Dice of decided links that lose packets by chance; empty if there are none, else one per link.
    pub(crate) dice: Vec<Dice>,
    /// Profiles of the last links added: new ones mostly have the same.
    recent: Vec<Arc<Profile>>,
    pub(crate) media: Vec<Medium>,
    /// Links and media with changed deadlines.
    pub(crate) dirty: Vec<u32>,
    pub(crate) seed: u64,
    pub(crate) spread: Nanos,
    pub(crate) begin: Nanos,
    /// Counters of links whose indices others have now.
    pub(crate) retired: LinkStats,
}

impl Links {
    /// An empty set with room for `capacity` links. `seed` is the scenario's; segments of a train with
    /// departures within `spread` stay together.
    pub fn with_capacity(capacity: usize, seed: u64, spread: Nanos) -> Self {
        Self {
            links: huge_vec(capacity),
            places: Vec::with_capacity(capacity),
            late: Vec::with_capacity(capacity),
            seed,
            spread,
            ..Self::default()
        }
    }

    /// Adds a link and returns its index. `place` is its place in the plan; its dice are named by `name`.
    pub fn add(&mut self, place: u32, name: &str, config: &LinkConfig) -> u32 {
        let dice = |spec: &Spec| dice_of(self.seed, name, spec);
        let (mut judges, mut queue, mut transmit, mut delay) = (Vec::new(), None, None, None);
        let (mut background, mut before) = (None, false);
        for (spec, values) in config.blocks() {
            if let Some(judge) = AnyJudge::build(spec, values, || dice(spec)) {
                judges.push(judge);
            } else if let Some(block) = Queue::build(spec, values, || dice(spec)) {
                queue = Some(block);
            } else if let Some(block) = Transmit::build(spec, values, || dice(spec)) {
                transmit = Some(block);
            } else if let Some(block) = Delay::build(spec, values, || dice(spec)) {
                (delay, before) = (Some(block), before_queue(spec, values));
            } else if Background::has(spec) {
                background = Some(Background::new(spec, values, dice(spec), (Nanos::ZERO, Nanos::ZERO)));
            }
        }
        let mut link = Link::new(Blocks::new(
            Chain::None,
            queue.unwrap_or_else(|| default_block(Queue::SPECS, Queue::build)),
            transmit.unwrap_or_else(|| default_block(Transmit::SPECS, Transmit::build)),
            delay.unwrap_or_else(|| default_block(Delay::SPECS, Delay::build)),
        ));
        link.place_judges(judges);
        link.place_delay(before);
        link.note_order();
        link.note_transmit();
        link.set_background(background);
        if config.histogram {
            link.rare().histogram = Some(Box::default());
        }
        if config.served {
            link.line.features |= has::SERVED;
        }
        link.note_decidable();
        link.begin_to_decide(Nanos::ZERO);
        let number = self.push(place, link);
        self.share(number);
        number
    }

    /// Adds a link like link `like`, whose configuration is `config`, and to which nothing has happened yet.
    /// Faster than [`Links::add`], because most of a million links are alike.
    pub fn add_alike(&mut self, place: u32, name: &str, like: u32, config: &LinkConfig) -> u32 {
        let model = &self.links[like as usize];
        if model.own.is_some() {
            return self.add(place, name, config);
        }
        let number = self.push(place, model.alike());
        self.make_room_for_dice(number);
        if let Some(dice) = self.dice.get_mut(number as usize)
            && matches!(self.links[number as usize].profile.loss, Loss::Chance(_))
        {
            *dice = dice_of(self.seed, name, &Independent::SPEC);
        }
        number
    }

    fn push(&mut self, place: u32, link: Link) -> u32 {
        self.links.push(link);
        self.places.push(place);
        self.late.push(0);
        self.links.len() as u32 - 1
    }

    /// Makes a new plain link share what others have, too.
    fn share(&mut self, number: u32) {
        let link = &mut self.links[number as usize];
        match self.recent.iter().find(|profile| **profile == link.profile) {
            Some(profile) => link.profile = Arc::clone(profile),
            None => {
                self.recent.truncate(RECENT - 1);
                self.recent.insert(0, Arc::clone(&link.profile));
            }
        }
        self.make_room_for_dice(number);
        let link = &mut self.links[number as usize];
        link.lay_down_dice(self.dice.get_mut(number as usize));
        if link.is_decided()
            && link.profile.is_whole()
            && link.line.features & has::WIRE == 0
            && link.known_rare().is_none()
        {
            link.own = None;
        }
    }

    /// Makes room for dice beside a link, if it needs that.
    pub(crate) fn make_room_for_dice(&mut self, number: u32) {
        if !matches!(self.links[number as usize].profile.loss, Loss::Chance(_)) && self.dice.is_empty() {
            return;
        }
        if self.dice.is_empty() {
            self.dice = huge_vec(self.links.capacity());
        }
        self.dice.resize_with(self.links.len(), Dice::default);
    }

    /// Informs every link and medium of the beginning of the run on the engine's clock: before anything else,
    /// and not if that is zero.
    pub fn start(&mut self, begin: Nanos) {
        self.begin = begin;
        self.links.iter_mut().for_each(|link| link.start(begin));
        self.media.iter_mut().for_each(|medium| medium.access.start(begin));
    }

    /// Whether a link has, or had, background traffic.
    pub fn has_background(&self, link: u32) -> bool {
        self.links[link as usize].line.features & has::BACKGROUND != 0
    }

    /// Number of links.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Whether they exceed the caches close to a processor.
    #[inline]
    pub fn are_many(&self) -> bool {
        self.links.len() > 256
    }

    /// Whether there are no links.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Bytes of a link of this configuration besides its record and its packets: its blocks, its discipline
    /// with its tables, and its histogram.
    pub fn tables_of(config: &LinkConfig) -> usize {
        let mut links = Self::with_capacity(1, 0, Nanos::ZERO);
        let link = links.add(0, "", config);
        let blocks = links.links[link as usize].known_blocks().map_or(0, |_| size_of::<Blocks>());
        let of_queue = |queue: Queue| queue.record_bytes() + queue.memory_bytes();
        let queue =
            config.block("queue").and_then(|(spec, values)| Queue::build(spec, values, Dice::default));
        let histogram = if config.histogram { size_of::<Rare>() + Histogram::BYTES } else { 0 };
        blocks + queue.map_or(0, of_queue) + histogram
    }

    /// Bytes of the links' records and the parallel arrays of all links, without individual blocks.
    pub fn memory_bytes(&self) -> usize {
        self.links.capacity() * size_of::<Link>()
            + (self.places.capacity() + self.late.capacity()) * size_of::<u32>()
            + self.dice.capacity() * size_of::<Dice>()
    }

    /// Prefetches a link and its dice, for a packet that arrives.
    #[inline]
    pub fn prefetch(&self, link: u32) {
        self.prefetch_link(link);
        prefetch_element(&self.dice, link as usize);
    }

    /// Prefetches a link, for packets that leave.
    #[inline(always)]
    pub fn prefetch_link(&self, link: u32) {
        prefetch_element(&self.links, link as usize);
    }

    /// Prefetches the packet that leaves `link` next; the link itself should be loaded.
    #[inline]
    pub fn prefetch_first(&self, pool: &Pool, link: u32) {
        if let Some(handle) = self.links[link as usize].first_to_leave() {
            pool.prefetch(handle);
        }
    }

    /// Effective arrival at `link` of a packet stamped `stamp`.
    #[inline]
    pub fn effective_arrival(&self, link: u32, stamp: Nanos) -> Nanos {
        let of = &self.links[link as usize];
        let arrival = of.effective_arrival(stamp);
        if of.line.features & has::MEDIUM == 0 { arrival } else { arrival.max(self.latest_on_medium(link)) }
    }

    /// Lets a packet arrive at `Meta::arrival`. Other packets that leave at once go to `out`, with
    /// `Meta::leave` set.
    #[inline]
    pub fn arrive(&mut self, pool: &mut Pool, link: u32, handle: Handle, out: &mut Fifo) -> Arrival {
        let of = &mut self.links[link as usize];
        if of.line.features & has::MEDIUM != 0 {
            return self.arrive_at_station(pool, link, handle, out);
        }
        of.arrive(
            self.dice.get_mut(link as usize),
            &mut Surroundings { pool, spread: self.spread, out },
            handle,
        )
    }

    /// Lets a packet arrive, with all packets that leave at once in `out`.
    pub fn arrive_and_leave(&mut self, pool: &mut Pool, link: u32, handle: Handle, out: &mut Fifo) {
        if self.arrive(pool, link, handle, out) == Arrival::Through {
            out.push(pool, handle);
        }
    }

    /// Releases all packets that leave by `until`, in order, to `out`, with `Meta::leave` set. On a medium,
    /// executes its events by then.
    #[inline]
    pub fn expire(&mut self, pool: &mut Pool, link: u32, until: Nanos, out: &mut Fifo) {
        match self.links.get_mut(link as usize) {
            Some(link) => link.expire(pool, until, out),
            None => self.expire_medium(pool, link, until),
        }
    }

    /// The time at which a link or medium must be served next; never if it holds nothing.
    #[inline]
    pub fn deadline(&self, link: u32) -> Nanos {
        match self.links.get(link as usize) {
            Some(link) => link.deadline(),
            None => self.medium_deadline(link),
        }
    }

    /// Time of a link's or medium's entry in the timing wheel, stored here because the link's record is
    /// loaded.
    #[inline]
    pub fn armed(&mut self, link: u32) -> &mut Nanos {
        let links = self.links.len();
        if link as usize >= links {
            return &mut self.media[link as usize - links].armed;
        }
        &mut self.links[link as usize].armed
    }

    /// A link's place in the plan; media follow all links.
    #[inline]
    pub fn place(&self, link: u32) -> u32 {
        self.places.get(link as usize).copied().unwrap_or(MEDIUM_PLACE)
    }

    /// Records the lateness of a packet that left `link`, if there is such a link.
    #[inline(always)]
    pub fn note_lateness(&mut self, number: u32, late: Nanos, tolerated: Nanos) {
        let Some(link) = self.links.get_mut(number as usize) else { return };
        if late.0 >= u64::from(link.notable) {
            link.note_lateness(late);
        }
        if late > tolerated {
            self.late[number as usize] += 1;
        }
    }

    /// Counters of a link up to `now`.
    pub fn stats(&mut self, pool: &mut Pool, number: u32, now: Nanos) -> LinkStats {
        let link = number;
        self.advance_station(pool, link, now);
        let collisions = self.collisions(link);
        let link = &mut self.links[link as usize];
        link.catch_up(pool, now);
        let late_packets = self.late[number as usize].into();
        LinkStats { collisions, late_packets, ..link.stats() }
    }

    /// Whether a link carries anything at `now`, according to its `state`.
    pub fn is_up(&self, link: u32, now: Nanos) -> bool {
        let blocks = self.links[link as usize].known_blocks();
        blocks.is_none_or(|blocks| blocks.before.chain.as_slice().iter().all(|judge| judge.is_up(now)))
    }

    /// A link's histogram of lateness, if it keeps one.
    pub fn histogram(&self, link: u32) -> Option<&Histogram> {
        self.links[link as usize].known_rare()?.histogram.as_deref()
    }

    /// Drops all packets as stopped, at the end of a run.
    pub fn flush(&mut self, pool: &mut Pool, now: Nanos) {
        self.links.iter_mut().for_each(|link| link.flush(pool, now, DropReason::Stopped));
        self.media.iter_mut().for_each(|medium| medium.ended = true);
    }
}

/// Builds a block of a stage.
type Build<B> = fn(&Spec, &Values, fn() -> Dice) -> Option<B>;

/// The first block of a stage with its default parameters. It never draws.
fn default_block<B>(specs: &[&'static Spec], build: Build<B>) -> B {
    let built = Values::read(specs[0], &[]).ok().and_then(|values| build(specs[0], &values, Dice::default));
    built.expect(
        "the first block of a stage has defaults for all its parameters; a test of the registry sees to it",
    )
}

/// The dice of a link's block.
fn dice_of(seed: u64, link: &str, spec: &Spec) -> Dice {
    Dice::named_in_parts(seed, &["links/", link, "/", spec.key])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Links with and without blocks of their own, dice and rare records.
    #[test]
    fn links_added_alike_are_like_links_added_one_by_one() {
        let each: [&[(&str, &str)]; 6] = [
            &[],
            &[("rate", "1 Mbit/s"), ("delay", "10 ms"), ("queue", "5 packets")],
            &[("loss", "3 %")],
            &[("rate", "1 Mbit/s"), ("loss", "0 %")],
            &[("rate", "1 Mbit/s"), ("mtu", "1000")],
            &[("rate", "0")],
        ];
        for (keys, histogram) in each.into_iter().flat_map(|keys| [(keys, false), (keys, true)]) {
            let set = |config: LinkConfig, (key, text): &(&str, &str)| config.with_text(key, text).unwrap();
            let mut config = keys.iter().fold(LinkConfig::default(), set);
            config.histogram = histogram;
            let [mut one_by_one, mut alike] = [(); 2].map(|()| Links::with_capacity(3, 7, Nanos::ZERO));
            for (place, name) in [(4, "a"), (5, "b.forward"), (9, "c")] {
                one_by_one.add(place, name, &config);
                match place {
                    4 => alike.add(place, name, &config),
                    _ => alike.add_alike(place, name, 0, &config),
                };
            }
            let shown =
                |links: &Links| format!("{:?}", (&links.links, &links.places, &links.late, &links.dice));
            assert_eq!(shown(&alike), shown(&one_by_one), "{keys:?}");
        }
    }
}
