//! Chromium without a screen, driven by the DevTools protocol over pipes.
#![allow(dead_code, reason = "each program that includes this module uses its own part")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for anything a page does, for busy machines.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one page.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    number: u64,
    /// Whether the last page has loaded.
    loaded: bool,
    /// Errors that the page reported: exceptions, violations of its policy, failed requests.
    pub errors: Vec<String>,
}

impl Browser {
    /// Starts it with its files in `folder`; none, with a message, if there is no Chromium.
    pub fn start(test: &str, folder: &Path) -> Option<Self> {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let there =
            |name: &&&str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
        let Some(program) = names.iter().find(there) else {
            println!("{test}: skipped: there is no chromium");
            return None;
        };
        // The pipes are descriptors 3 (requests) and 4 (answers).
        let script = format!(
            "exec {program} --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
             --user-data-dir=\"$1\" --remote-debugging-pipe about:blank 3<&0 4>&1 </dev/null >/dev/null 2>&1"
        );
        let mut child = Command::new("sh")
            .args(["-c", &script, "sh"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut browser =
            Self { child, to, from, session: None, number: 0, loaded: false, errors: Vec::new() };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(String::from);
        for domain in ["Runtime.enable", "Log.enable", "Page.enable"] {
            browser.call(domain, json!({}));
        }
        Some(browser)
    }

    /// Sends a command and returns its result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let message = self.next();
            if message["id"] == self.number {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.note(&message);
        }
    }

    fn next(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser has ended");
        serde_json::from_slice(&bytes).unwrap()
    }

    fn note(&mut self, message: &Value) {
        let params = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "Page.loadEventFired" => self.loaded = true,
            "Runtime.exceptionThrown" => self.errors.push(params["exceptionDetails"].to_string()),
            "Log.entryAdded" if params["entry"]["level"] == "error" => {
                self.errors.push(params["entry"]["text"].as_str().unwrap_or_default().into());
            }
            _ => {}
        }
    }

    /// Opens a page in a window of this size, for a system that prefers `scheme`.
    pub fn open(&mut self, url: &str, (width, height): (u32, u32), scheme: &str) {
        self.resize((width, height), scheme);
        self.loaded = false;
        self.call("Page.navigate", json!({ "url": url }));
        while !self.loaded {
            let message = self.next();
            self.note(&message);
        }
    }

    pub fn resize(&mut self, (width, height): (u32, u32), scheme: &str) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": scheme }));
    }

    /// The group of its processes.
    pub fn group(&self) -> u32 {
        self.child.id()
    }

    /// The whole page as a PNG.
    pub fn picture(&mut self) -> Vec<u8> {
        let picture = self.call("Page.captureScreenshot", json!({ "captureBeyondViewport": true }));
        from_base64(picture["data"].as_str().unwrap_or_default())
    }

    /// The value of an expression, promises awaited.
    pub fn value(&mut self, expression: &str) -> Value {
        let ask = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", ask);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true, checked at each frame of the page.
    pub fn wait(&mut self, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        let once = format!(
            "new Promise((done) => {{ const until = performance.now() + 2000; const look = () => \
             {{ const is = Boolean({expression}); if (is || performance.now() > until) done(is); \
             else setTimeout(look, 20); }}; look(); }})"
        );
        while self.value(&once) != true {
            if Instant::now() > deadline {
                let shown = self.value("document.body.innerText");
                panic!("never: {expression}\n{}\n{:?}", shown.as_str().unwrap_or_default(), self.errors);
            }
        }
    }
}

/// The bytes of a text in base64 (RFC 4648, section 4).
fn from_base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0u32, 0);
    for digit in text.bytes().filter_map(|byte| DIGITS.iter().position(|known| *known == byte)) {
        (bits, held) = (bits << 6 | digit as u32, held + 6);
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its files can be removed once all processes of its group have ended: until then they write.
        let group = format!("-{}", self.child.id());
        let signal = |signal: &str| {
            let sent = Command::new("kill").args(["-s", signal, "--", &group]).stderr(Stdio::null()).status();
            sent.is_ok_and(|status| status.success())
        };
        signal("KILL");
        let _ = self.child.wait();
        let deadline = Instant::now() + PATIENCE;
        while signal("0") && Instant::now() < deadline {
            std::thread::yield_now();
        }
    }
}
