//! The thread that asks the instance.

use crate::watched::{WatchError, WatchedInstance};
use longwire_control::{EventPage, Kind, Object, ObjectPage, ObjectQuery, Summary};
use serde_json::Value;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Routers whose programs are asked for at a time.
const MOST_ROUTERS: usize = 12;

/// What the screen shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ViewRequest {
    /// The table, if it is one of objects.
    pub(crate) kind: Option<Kind>,
    /// Its rows.
    pub(crate) choice: ObjectQuery,
    /// The last entry of the log that is known.
    pub(crate) after: u64,
}

/// A question.
#[derive(Debug)]
pub(crate) enum Ask {
    /// How things are.
    Look(ViewRequest),
    /// A change of an object.
    Set { kind: Kind, name: String, changes: Vec<(String, String)> },
}

/// How things are.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    pub(crate) wanted: ViewRequest,
    pub(crate) summary: Summary,
    /// The rows, if the table is one of objects.
    pub(crate) page: Option<ObjectPage>,
    pub(crate) events: EventPage,
    /// The answers about programs of routers, by the routers' names, where programs are shown.
    pub(crate) programs: Vec<(String, Value)>,
}

/// An answer.
#[derive(Debug)]
pub(crate) enum Answer {
    /// How many links there are, at the start; if that is not known, [`Self::Looked`] has the reason.
    Links(usize),
    /// The description of the API, at the start or as soon as it can be had.
    Described(Value),
    /// How things are.
    Looked(Result<Box<Look>, WatchError>),
    /// The result of a change.
    Set(Result<Object, WatchError>),
}

/// The line to the thread, which ends when this is dropped and its last question is answered.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) asks: Sender<Ask>,
    pub(crate) answers: Receiver<Answer>,
}

impl Asking {
    /// Starts the thread. The first answers need no question.
    pub(crate) fn start(watched: Box<dyn WatchedInstance>) -> io::Result<Self> {
        let (asks, asked) = channel();
        let (answering, answers) = channel();
        let answer = move || answer_all(&*watched, &asked, &answering);
        std::thread::Builder::new().name("view".into()).spawn(answer)?;
        Ok(Self { asks, answers })
    }
}

fn answer_all(watched: &dyn WatchedInstance, asked: &Receiver<Ask>, answers: &Sender<Answer>) {
    let send = |answer| answers.send(answer).is_ok();
    // An error is shown, and the first look follows either answer.
    send(match watched.links() {
        Ok(links) => Answer::Links(links),
        Err(why) => Answer::Looked(Err(why)),
    });
    let describe = || watched.description().is_ok_and(|description| send(Answer::Described(description)));
    let mut is_described = describe();
    while let Ok(ask) = asked.recv() {
        let goes_on = match ask {
            Ask::Look(wanted) => send(Answer::Looked(look(watched, wanted).map(Box::new))),
            Ask::Set { kind, name, changes } => send(Answer::Set(watched.set(kind, &name, &changes))),
        };
        if !goes_on {
            return;
        }
        // One that was silent at first describes itself later.
        is_described = is_described || describe();
    }
}

fn look(watched: &dyn WatchedInstance, wanted: ViewRequest) -> Result<Look, WatchError> {
    let page = wanted.kind.map(|kind| watched.page(kind, &wanted.choice)).transpose()?;
    let programs = match (wanted.kind, &page) {
        (Some(Kind::Router), Some(page)) => {
            let names = page.objects.iter().take(MOST_ROUTERS).map(|router| router.name.clone());
            budgets(watched, names)
        }
        (Some(Kind::Forwarder), Some(page)) => {
            let mut names: Vec<String> = page.objects.iter().filter_map(router_of).collect();
            names.dedup();
            names.truncate(MOST_ROUTERS);
            budgets(watched, names.into_iter())
        }
        _ => Vec::new(),
    };
    let (summary, events) = (watched.summary()?, watched.events(wanted.after)?);
    Ok(Look { wanted, summary, page, events, programs })
}

/// The router of a program, which is called `ROUTER/NAME`.
fn router_of(program: &Object) -> Option<String> {
    program.name.rsplit_once('/').map(|(router, _)| router.to_owned())
}

fn budgets(watched: &dyn WatchedInstance, routers: impl Iterator<Item = String>) -> Vec<(String, Value)> {
    // One that has gone meanwhile is left out.
    routers.filter_map(|router| watched.programs(&router).ok().map(|answer| (router, answer))).collect()
}
