//! `run --virtual`: the whole scenario on a simulated clock.

use crate::objects::changing::edited;
use crate::objects::links::LiveLinks;
use crate::open_ports::{open_sinks, open_virtual, refuse_control_planes};
use crate::port_files::PortFiles;
use crate::programs::rows;
use crate::records::{RecordOptions, RecordSummary, VirtualRecords};
use crate::replay_port::PortWatch;
use crate::run_report::ReportInput;
use anyhow::bail;
use longwire_assemble::{TO_THE_END, build, rewirings};
use longwire_block::flow::Course;
use longwire_engine::Report;
use longwire_report::Row;
use longwire_scenario::{Plan, Source};
use longwire_units::Nanos;
use std::sync::Arc;

/// The result of a virtual run.
pub struct VirtualRunOutcome {
    /// The plan at the end.
    pub plan: Arc<Plan>,
    /// The engine's counters.
    pub counted: Report,
    /// What is left of the ports, by place in the plan.
    pub watches: Vec<Option<PortWatch>>,
    /// The simulated duration.
    pub elapsed: Nanos,
    /// A row for each program of its routers.
    pub programs: Vec<Row>,
    /// What it wrote down.
    pub recorded: RecordSummary,
}

impl VirtualRunOutcome {
    /// What its report is made of, and what it wrote down.
    pub fn report_input(self) -> (ReportInput<'static>, RecordSummary) {
        let links = LiveLinks::new(&self.plan, &[]);
        links.note_report(Nanos::NEVER, &self.counted);
        let input = ReportInput {
            plan: self.plan,
            counted: Arc::new(self.counted),
            watches: self.watches,
            mode: "virtual",
            elapsed: self.elapsed,
            settings: Box::new(move |place| links.settings(place as u32)),
            aims: Box::new(|_| Vec::new()),
            planes: Vec::new(),
            nesp: None,
            programs: self.programs,
        };
        (input, self.recorded)
    }
}

/// Runs `plan` on captures and traffic sources, until no event is left or for `time`.
///
/// # Errors
/// A source has no end, a file is unusable, or the packet pool is full.
pub fn simulate(
    plan: &Arc<Plan>,
    files: &PortFiles,
    time: Option<Nanos>,
    options: RecordOptions,
) -> anyhow::Result<VirtualRunOutcome> {
    // What is removed in the meantime ends then.
    let at_last = after_all(plan);
    let mut sources = at_last.sources.iter().enumerate();
    if let Some((_, source)) = sources.find(|(place, source)| never_ends(at_last, *place, source))
        && time.is_none()
    {
        bail!(
            "{}: the source \"{}\" never ends; say how long to run (--for 10s), or give it \"for\" or \
             \"packets\"",
            plan.file,
            source.name
        );
    }
    files.check_written(plan, options.files())?;
    files.check_rotated(plan, options.maker.rotation, options.files())?;
    let open = open_virtual(plan, files)?;
    let mut watches = open.watches;
    watches.widen(at_last.source_numbers);
    let mut records = VirtualRecords::start(options, plan)?;
    let mut built = build(plan, open.ports, |worker| records.observer(worker))?;
    let sampler = records.begin(plan, &built.layout.links);
    if let Some(worker) = built.setup.workers.first_mut() {
        worker.sampler = sampler;
    }
    built.raise_in_line(plan)?;
    // Programs are not installed or removed in virtual time.
    let installed = built.programs();
    let mut planned = Vec::new();
    for (stage, mut made) in plan.stages.iter().zip(rewirings(plan, &built.layout)?) {
        refuse_control_planes(&stage.plan)?;
        made.raise_in_line(&stage.plan)?;
        let added = open_sinks(&stage.plan, &made.new_ports, &watches.origin)?;
        made.give_ports(added.ports);
        watches.follow(&[], &added.watches);
        watches.widen(at_last.source_numbers);
        made.give_sources(watches.joining_sources(&stage.plan, &made)?);
        records.place(&stage.plan, &made.layout.links, &made.added);
        planned.push((stage.time, made.rewiring));
    }
    let mut counted = built.setup.simulate_rewired(time.unwrap_or(TO_THE_END), planned);
    let mut recorded = records.finish();
    counted.errors.append(&mut recorded.errors);
    if counted.own_losses().pool > 0 {
        bail!(
            "the packet pool was full, so the run was ended; set engine.pool above {} in {}, or run the \
             scenario for a shorter time",
            plan.engine.pool,
            plan.file
        );
    }
    let elapsed = time.unwrap_or(counted.elapsed);
    let programs = rows::whole(plan, &installed);
    let last = counted.rewired.checked_sub(1).map_or(plan, |last| &plan.stages[last].plan);
    Ok(VirtualRunOutcome {
        plan: Arc::clone(last),
        counted,
        watches: watches.by_place,
        elapsed,
        programs,
        recorded,
    })
}

/// The plan after all that is added and removed.
fn after_all(plan: &Plan) -> &Plan {
    plan.stages.last().map_or(plan, |stage| &stage.plan)
}

/// Whether a source has no end after all its changes.
fn never_ends(plan: &Plan, place: usize, source: &Source) -> bool {
    let mut events: Vec<_> = plan.events.iter().collect();
    events.retain(|event| event.sources.contains(&(place as u32)));
    events.sort_by_key(|event| event.time);
    let edits = events.iter().flat_map(|event| event.edits.iter());
    let course = Course::among(&edited(&source.blocks(&plan.ports), edits));
    course.is_some_and(|course| course.packets == u64::MAX && course.duration == Nanos::NEVER)
}
