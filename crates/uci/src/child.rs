//! A child process that communicates in lines and cannot block or overload its parent.
//!
//! It runs in its own process group, so that the processes it starts end with it. Threads read its
//! output into a bounded queue of bounded lines; a child that writes too much blocks on its own full
//! pipe. A thread writes its input, so that a child that does not read cannot block the parent. This
//! module does not interpret UCI.

use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::line::{Line, read_line};
use crate::program::EngineCommand;

/// The longest line that is kept. A principal variation of a thousand moves fits.
const LINE_LIMIT: usize = 64 << 10;
/// The most lines in a queue.
const QUEUE_LIMIT: usize = 256;
/// How much of the end of standard error is kept.
const STDERR_LIMIT: usize = 2 << 10;

pub(crate) struct ChildProcess {
    child: Child,
    input: SyncSender<Message>,
    output: Receiver<Received>,
    stderr: Arc<Mutex<Vec<u8>>>,
}

/// Text to write to the child.
struct Message {
    text: String,
    /// Receives the time at which the text is written.
    written: SyncSender<Instant>,
}

pub(crate) enum Received {
    /// A line and the time at which it was read.
    Line(String, Instant),
    /// A line over the limit, which was dropped.
    TooLong,
}

impl ChildProcess {
    pub fn spawn(path: &Path, command: &EngineCommand) -> io::Result<ChildProcess> {
        let mut process = std::process::Command::new(path);
        process.args(&command.arguments);
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(directory) = &command.directory {
            process.current_dir(directory);
        }
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut process, 0);
        let child = process.spawn()?;
        let (input, to_write) = sync_channel(QUEUE_LIMIT);
        let (read, output) = sync_channel(QUEUE_LIMIT);
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let mut process = ChildProcess { child, input, output, stderr };
        if let Err(error) = process.start_threads(to_write, read) {
            let _ = process.kill();
            return Err(error);
        }
        Ok(process)
    }

    /// Starts the threads that read and write its pipes.
    ///
    /// They end when the child ends, which closes the pipes. They are not joined: a grandchild that
    /// left the process group may keep a pipe open forever.
    fn start_threads(
        &mut self,
        to_write: Receiver<Message>,
        read: SyncSender<Received>,
    ) -> io::Result<()> {
        if let Some(stdin) = self.child.stdin.take() {
            thread::Builder::new().spawn(move || write_all(stdin, &to_write))?;
        }
        if let Some(stdout) = self.child.stdout.take() {
            thread::Builder::new().spawn(move || read_lines(stdout, &read))?;
        }
        if let Some(pipe) = self.child.stderr.take() {
            let tail = Arc::clone(&self.stderr);
            thread::Builder::new().spawn(move || drain(pipe, &tail))?;
        }
        Ok(())
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Queues text for writing. The receiver gets the time at which it is written. `None` if the child
    /// has ended or its queue is full because it does not read.
    pub fn send(&self, text: String) -> Option<Receiver<Instant>> {
        let (written, moment) = sync_channel(1);
        self.input.try_send(Message { text, written }).ok()?;
        Some(moment)
    }

    /// The next line, or an error after the deadline or if the child closed its output.
    pub fn receive(&self, deadline: Instant) -> Result<Received, RecvTimeoutError> {
        self.output.recv_timeout(deadline.saturating_duration_since(Instant::now()))
    }

    /// Waits for the child to exit; returns false if it did not.
    pub fn wait(&mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut pause = Duration::from_micros(50);
        loop {
            if self.has_exited() {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(Duration::from_millis(10));
        }
    }

    /// Does not reap the child, so that its process group ID stays valid until it is killed.
    #[cfg(unix)]
    fn has_exited(&mut self) -> bool {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match process_id(&self.child) {
            // An error means that there is nothing to wait for.
            Some(id) => !matches!(waitid(WaitId::Pid(id), options), Ok(None)),
            None => true,
        }
    }

    #[cfg(not(unix))]
    fn has_exited(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills the child and its process group, and waits so that no zombie remains. Returns the child's
    /// own status if it had already exited.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.reaped() {
            return Ok(status);
        }
        #[cfg(unix)]
        if let Some(id) = process_id(&self.child) {
            // This fails if no process is left, which is fine.
            let _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
        }
        let _ = self.child.kill();
        self.child.wait()
    }

    #[cfg(unix)]
    fn reaped(&mut self) -> Option<ExitStatus> {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // Once reaped, the process ID may be reused: do not send it a signal.
        match waitid(WaitId::Pid(process_id(&self.child)?), options) {
            Ok(_) => None,
            Err(_) => self.child.try_wait().ok().flatten(),
        }
    }

    #[cfg(not(unix))]
    fn reaped(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// The end of its standard error.
    pub fn stderr(&self) -> String {
        let tail = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&tail).trim().to_owned()
    }
}

#[cfg(unix)]
fn process_id(child: &Child) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(i32::try_from(child.id()).ok()?)
}

fn write_all(mut stdin: ChildStdin, texts: &Receiver<Message>) {
    for Message { text, written } in texts {
        // Sent before the write, because the child may answer at once. The receiver may be gone.
        let _ = written.try_send(Instant::now());
        if stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush()).is_err() {
            break;
        }
    }
}

fn read_lines(stdout: ChildStdout, lines: &SyncSender<Received>) {
    let mut input = BufReader::new(stdout);
    loop {
        let received = match read_line(&mut input, LINE_LIMIT) {
            Ok(Line::Text(line)) => Received::Line(line, Instant::now()),
            Ok(Line::TooLong) => Received::TooLong,
            Ok(Line::End) | Err(_) => break,
        };
        if lines.send(received).is_err() {
            break;
        }
    }
}

fn drain(mut stderr: ChildStderr, tail: &Mutex<Vec<u8>>) {
    let mut chunk = [0; STDERR_LIMIT];
    while let Ok(count @ 1..) = stderr.read(&mut chunk) {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(&chunk[..count]);
        let excess = tail.len().saturating_sub(STDERR_LIMIT);
        tail.drain(..excess);
    }
}
