//! A fake instance that records its calls, and a directory for its socket.

use longwire_control::{
    Duplex, ForwarderAsk, Instance, Link, LinkAnswer, Medium, RoutePage, SetError, Source,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

pub struct Fake {
    name: String,
    settings: Mutex<BTreeMap<String, BTreeMap<String, String>>>,
    source: Mutex<BTreeMap<String, String>>,
    routes: Mutex<Vec<String>>,
    pub stopped: AtomicBool,
    /// Panic when asked for statistics.
    pub broken: AtomicBool,
}

const LINKS: [&str; 5] = ["up", "down", "dsl/17 ä?", "wan.forward", "wan.backward"];

impl Fake {
    pub fn named(name: &str) -> Arc<Self> {
        let pairs = [("rate", "10 Mbit/s"), ("delay", "20 ms"), ("loss", "2 %")];
        let one: BTreeMap<_, _> = pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let settings = LINKS.iter().map(|name| (name.to_string(), one.clone())).collect();
        let (stopped, broken) = (AtomicBool::new(false), AtomicBool::new(false));
        let source = [("model", "cbr"), ("rate", "3 Mbit/s")].map(|(k, v)| (k.to_string(), v.to_string()));
        let source = Mutex::new(BTreeMap::from(source));
        let routes = Mutex::new(vec!["10.1.0.0/16 via 10.9.0.2 dev east".into()]);
        let settings = Mutex::new(settings);
        Arc::new(Self { name: name.into(), settings, source, routes, stopped, broken })
    }
}

impl Instance for Fake {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn stats(&self) -> Value {
        assert!(!self.broken.load(Ordering::SeqCst), "this instance was told to fail");
        json!({"in": 10, "out": 9, "dropped": 1})
    }

    fn link_names(&self) -> Arc<[String]> {
        LINKS.map(String::from).into()
    }

    fn link(&self, name: &str) -> Option<LinkAnswer> {
        let of = |name: &str| {
            let settings = self.settings.lock().unwrap().get(name)?.clone();
            Some(Link { name: name.into(), settings, stats: json!({"in": 5, "out": 4}) })
        };
        let direction = |which| of(&format!("{name}.{which}"));
        let both = || Some(vec![direction("forward")?, direction("backward")?]);
        let duplex = |directions| LinkAnswer::Duplex(Duplex { name: name.into(), directions });
        of(name).map(LinkAnswer::One).or_else(|| both().map(duplex))
    }

    fn set_link(&self, link: &str, changes: &[(String, String)]) -> Result<LinkAnswer, SetError> {
        let meant = self.link(link).ok_or_else(|| SetError::UnknownLink(link.into()))?;
        let mut all = self.settings.lock().unwrap();
        let settings = &all[&meant.links()[0].name];
        for (key, text) in changes {
            if !settings.contains_key(key) {
                let known = settings.keys().cloned().collect();
                return Err(SetError::UnknownKey { key: key.clone(), known });
            }
            if !text.starts_with(|c: char| c.is_ascii_digit()) {
                let reason = format!("\"{text}\" is not a time such as \"25 ms\"");
                return Err(SetError::Value { key: key.clone(), reason });
            }
        }
        for link in meant.links() {
            all.get_mut(&link.name).unwrap().extend(changes.iter().cloned());
        }
        drop(all);
        self.link(link).ok_or_else(|| SetError::UnknownLink(link.into()))
    }

    fn source_names(&self) -> Arc<[String]> {
        ["video".to_string()].into()
    }

    fn source(&self, name: &str) -> Option<Source> {
        let settings = self.source.lock().unwrap().clone();
        (name == "video").then(|| Source { name: name.into(), settings })
    }

    fn set_source(&self, source: &str, changes: &[(String, String)]) -> Result<Source, SetError> {
        let found = self.source(source).ok_or_else(|| SetError::UnknownSource(source.into()))?;
        if let Some((key, _)) = changes.iter().find(|(key, _)| !found.settings.contains_key(key)) {
            return Err(SetError::Value { key: key.clone(), reason: format!("the model cbr has no {key}") });
        }
        self.source.lock().unwrap().extend(changes.iter().cloned());
        self.source(source).ok_or_else(|| SetError::UnknownSource(source.into()))
    }

    fn router_names(&self) -> Vec<String> {
        vec!["core".into()]
    }

    fn routes(&self, router: &str) -> Result<RoutePage, SetError> {
        let routes = self.routes.lock().unwrap().clone();
        if router == "core" {
            Ok(RoutePage { routes, more: false })
        } else {
            Err(SetError::UnknownRouter(router.into()))
        }
    }

    fn change_route(&self, router: &str, add: bool, route: &str) -> Result<(), SetError> {
        self.routes(router)?;
        let mut routes = self.routes.lock().unwrap();
        let known = routes.iter().position(|known| known.starts_with(route));
        match (add, known) {
            (true, _) => routes.push(route.into()),
            (false, Some(place)) => drop(routes.remove(place)),
            (false, None) => {
                return Err(SetError::Value {
                    key: "route".into(),
                    reason: format!("there is no route to {route}"),
                });
            }
        }
        Ok(())
    }

    fn weigh_flow(&self, router: &str, flow: &str, weight: i64) -> Result<(), SetError> {
        self.routes(router)?;
        if flow != "voice" || weight < 1 {
            let (key, reason) =
                (if flow == "voice" { "weight" } else { "flow" }.into(), "there is none".into());
            return Err(SetError::Value { key, reason });
        }
        Ok(())
    }

    fn forwarders(&self, router: &str, ask: &ForwarderAsk) -> Result<Value, SetError> {
        self.routes(router)?;
        Ok(json!({"asked": ask}))
    }

    fn medium_names(&self) -> Arc<[String]> {
        ["cell".to_string()].into()
    }

    fn medium(&self, name: &str) -> Option<Medium> {
        let settings = BTreeMap::from([("rate".to_string(), "11 Mbit/s".to_string())]);
        (name == "cell").then(|| Medium { name: name.into(), settings })
    }

    fn set_medium(&self, medium: &str, changes: &[(String, String)]) -> Result<Medium, SetError> {
        let mut found = self.medium(medium).ok_or_else(|| SetError::UnknownMedium(medium.into()))?;
        found.settings.extend(changes.iter().cloned());
        Ok(found)
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }
}

/// A temporary directory of this test, not made yet, removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("longwire-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self(std::env::temp_dir().join(name))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
