//! A gateway between two hosts with a container of the router's services, or with a virtual machine in it,
//! all in namespaces; runs attacks from inside, and judges what comes to the hosts.

use crate::actions::MachineAction;
use crate::attacks::{Attack, MARKER};
use crate::between::{Conversation, Listener};
use crate::frames::{Scene, ethernet, udp4};
use crate::policies::{FIRST, Signing};
use crate::policy_judge::forbidden;
use crate::report::AttackResult;
use crate::rings::RingAttack;
use crate::tap::Tap;
use ports::live::GuestLink;
use rig::{GuestSystem, Namespace, VirtualMachine};
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long is waited for something that has to happen.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
/// What the datagram that ends an attack says, before the attack's number.
const END: &[u8] = b"the attack is over: ";

/// A gateway, its hosts, and its container.
pub struct Laboratory {
    /// Where the gateway is.
    pub gateway: Namespace,
    /// The host of the LAN.
    pub lan: Namespace,
    /// The host of the WAN.
    pub wan: Namespace,
    /// The router and the hosts.
    pub scene: Scene,
    taps: [Tap; 2],
    pub(crate) conversation: Conversation,
    /// Where services are in the container: what comes to a machine passes no tap.
    pub(crate) listener: Option<Listener>,
    pub(crate) signing: Signing,
    programs: PathBuf,
    pub(crate) sender: PathBuf,
    folder: tempfile::TempDir,
    machine: Option<VirtualMachine>,
    /// How the machine is linked, if there is one.
    link: Option<GuestLink>,
    launch: Child,
    told: Receiver<String>,
    pub(crate) ends: u64,
}

/// Who is in the container.
pub enum InContainer {
    /// Services, as processes.
    Services,
    /// A virtual machine.
    Machine(GuestSystem),
    /// A monitor without a machine, which shares its memory and does with the rings what it likes.
    Rings,
}

impl InContainer {
    /// How the machine is linked, if it is one.
    fn link(&self) -> Option<GuestLink> {
        match self {
            InContainer::Services => None,
            InContainer::Machine(guest) => Some(guest.link),
            InContainer::Rings => Some(GuestLink::VhostUser),
        }
    }
}

/// The tier of a monitor without a machine.
pub(crate) const BY_RINGS: &str = "T2 rings";

/// How often an attack by rings is made, each time by another machine.
const TIMES: u32 = 3;

impl Laboratory {
    /// Starts it with the programs that are beside `redteam`, which is this program.
    ///
    /// # Errors
    /// Namespaces cannot be made, or a program is missing.
    pub fn start(redteam: &Path, inside: &InContainer) -> io::Result<Laboratory> {
        let link = inside.link();
        let programs = redteam.parent().map(Path::to_owned).unwrap_or_default();
        for name in ["ravelin", "ravelin-core", "ravelin-launch", "ravelin-vhost"] {
            if !programs.join(name).exists() {
                let text = format!(
                    "`{name}` is not beside {}: `cargo build -p cli -p ravelin-launch -p ravelin-vhost && cargo build -p \
                     ravelin-core` makes it",
                    redteam.display()
                );
                return Err(io::Error::new(io::ErrorKind::NotFound, text));
            }
        }
        let scene = Scene::usual();
        let (gateway, lan, wan) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        // The machine itself would talk, too.
        gateway.set("ipv6/conf/default/disable_ipv6", "1")?;
        for (host, end, victim) in [(&lan, "to-lan", scene.lan), (&wan, "to-wan", scene.wan)] {
            // No IPv6, whose hosts would talk by themselves.
            host.set("ipv6/conf/default/disable_ipv6", "1")?;
            let mut station = victim.ethernet;
            station[4] = 9;
            gateway.links()?.cable((end, station), ("eth", victim.ethernet), host)?;
            // What leaves is cut before it comes to a tap, as on a wire.
            gateway.links()?.offloads(end, false)?;
            gateway.links()?.up(end)?;
            host.links()?.up("eth")?;
            host.links()?.address("eth", victim.ipv4, 24)?;
            for other in [scene.lan, scene.wan, scene.own()].iter().filter(|other| other.ipv4 != victim.ipv4)
            {
                // So that no host asks: what comes to the other one is then the gateway's or an attack's.
                host.links()?.neighbour("eth", other.ipv4, other.ethernet)?;
            }
        }
        let folder = tempfile::tempdir()?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        let signing = Signing::new(&programs.join("ravelin"), folder.path())?;
        let text = format!(
            "program = \"{FIRST}\"\ncontrol = \"{folder}/control.sock\"\ncontainers = \"{folder}/containers\"\n\
             [[port]]\ninterface = \"to-lan\"\n[[port]]\ninterface = \"to-wan\"\n\
             [[port]]\ninterface = \"services\"\nkind = \"vnic\"\n\
             vnic = {{ ethernet = \"02:00:00:00:00:63\", addresses = [\"10.1.1.99/24\", \"fd00:1::99/64\"], \
             guest = {} }}\n{}",
            link.map_or("false".to_owned(), |link| format!("\"{}\"", link.name())),
            signing.section,
            folder = folder.path().display()
        );
        fs::write(folder.path().join("gateway.toml"), text)?;
        let mut command = gateway.command(programs.join("ravelin"), None);
        command.args(["serve", "--trusted"]).arg(folder.path().join("gateway.toml"));
        let mut launch = command.stderr(Stdio::piped()).spawn()?;
        let (tells, told) = channel();
        let errors = launch.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
        thread::spawn(move || {
            let lines = BufReader::new(errors).lines().map_while(Result::ok);
            lines.take_while(|line| tells.send(line.clone()).is_ok()).count()
        });
        let taps = [lan.inside(|| Tap::new("eth"))?, wan.inside(|| Tap::new("eth"))?];
        let conversation = Conversation::new(&scene, [&lan, &wan], folder.path())?;
        let sender = redteam.to_owned();
        let (machine, listener, ends) = (None, None, 0);
        let mut laboratory = Laboratory {
            gateway,
            lan,
            wan,
            scene,
            taps,
            conversation,
            listener,
            signing,
            programs,
            sender,
            folder,
            machine,
            link,
            launch,
            told,
            ends,
        };
        laboratory.hears("core: program 2 runs")?;
        match inside {
            InContainer::Machine(guest) => laboratory.start_machine(guest)?,
            InContainer::Rings => {}
            // As an attacker does, so that Linux inside refuses fewer frames.
            InContainer::Services => {
                laboratory.contain(&["ip", "link", "set", "services", "mtu", "9000"]).status()?;
                laboratory.listener = Some(Listener::new(laboratory.tap_inside()?));
            }
        }
        Ok(laboratory)
    }

    /// A tap at the link of the container, of what comes to whoever is there.
    pub(crate) fn tap_inside(&self) -> io::Result<Tap> {
        let namespaces = container::Namespaces::open(&self.containers(), "services");
        let tap = namespaces.and_then(|namespaces| namespaces.inside(|| Tap::new("services")));
        tap.map_err(io::Error::other)?
    }

    /// Starts a virtual machine in the container, in place of one that may be there.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_machine(&mut self, guest: &GuestSystem) -> io::Result<()> {
        self.machine = None;
        let mut contain = Command::new(self.programs.join("ravelin"));
        contain.arg("contain").arg("--containers").arg(self.containers());
        let addresses = "10.1.1.99/24 fd00:1::99/64";
        self.machine = Some(VirtualMachine::start(
            guest,
            &[&self.sender],
            addresses,
            (self.folder.path(), &self.socket()),
            contain,
        )?);
        Ok(())
    }

    /// The virtual machine.
    ///
    /// # Errors
    /// There is none.
    pub fn machine(&mut self) -> io::Result<&mut VirtualMachine> {
        self.machine.as_mut().ok_or_else(|| io::Error::other("it was started without a virtual machine"))
    }

    /// The tier that is attacked.
    pub(crate) fn tier(&self) -> String {
        match (self.link, &self.machine) {
            (None, _) => "T1",
            (Some(GuestLink::Tap), _) => "T2",
            (Some(GuestLink::VhostUser), Some(_)) => "T2 vhost-user",
            (Some(GuestLink::VhostUser), None) => BY_RINGS,
        }
        .to_owned()
    }

    /// Waits until the gateway tells a line with these words.
    ///
    /// # Errors
    /// It does not.
    pub fn hears(&self, words: &str) -> io::Result<String> {
        Ok(self.hears_until(words, |line| line.contains(words))?.pop().unwrap_or_default())
    }

    /// Waits until the gateway tells such a line, which is `what`. Returns all lines up to it.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn hears_until(&self, what: &str, is_it: impl Fn(&str) -> bool) -> io::Result<Vec<String>> {
        let (end, mut lines) = (Instant::now() + LIMIT, Vec::new());
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self
                .told
                .recv_timeout(left)
                .map_err(|_| io::Error::other(format!("`{what}` was not told: {}", lines.join("\n"))))?;
            let is_last = is_it(&line);
            lines.push(line);
            if is_last {
                return Ok(lines);
            }
        }
    }

    /// Forgets what the gateway has told.
    pub(crate) fn forget_told(&self) {
        self.told.try_iter().for_each(drop);
    }

    /// The folder that keeps the namespaces.
    pub fn containers(&self) -> PathBuf {
        self.folder.path().join("containers")
    }

    /// The socket at which the monitor of a machine is expected.
    fn socket(&self) -> PathBuf {
        container::monitor_socket(&self.containers(), "services")
    }

    /// The process of the gateway that has rights.
    pub fn launch(&self) -> u32 {
        self.launch.id()
    }

    /// The process that runs packets.
    ///
    /// # Errors
    /// There is none.
    pub fn core(&self) -> io::Result<u32> {
        self.process("ravelin-core")
    }

    /// The only process of the gateway of this name, once there is one alone: the one before may be ending.
    pub(crate) fn process(&self, name: &str) -> io::Result<u32> {
        let (id, end) = (self.launch.id(), Instant::now() + LIMIT);
        loop {
            let is_it = |pid: &u32| {
                fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name)
            };
            let mut found = children(id)?.into_iter().filter(is_it);
            match (found.next(), found.next()) {
                (Some(one), None) => return Ok(one),
                _ if Instant::now() > end => {
                    return Err(io::Error::other(format!("there is not one `{name}` alone")));
                }
                _ => thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// The control socket.
    pub(crate) fn control(&self) -> PathBuf {
        self.folder.path().join("control.sock")
    }

    /// A command that will run in the container as root.
    pub fn contain(&self, command: &[&str]) -> Command {
        self.contain_with(&[], command)
    }

    /// The same with further options of `ravelin contain`.
    fn contain_with(&self, options: &[&str], command: &[&str]) -> Command {
        let mut contain = Command::new(self.programs.join("ravelin"));
        contain.arg("contain").arg("--containers").arg(self.containers());
        if self.link.is_some() {
            contain.arg("--guest");
        }
        contain.args(options).arg("--show").arg(&self.sender).arg("--").args(command);
        contain
    }

    /// What `ravelin show policy` says, as JSON.
    ///
    /// # Errors
    /// Nobody answers.
    pub fn shown(&self) -> io::Result<serde_json::Value> {
        let end = Instant::now() + LIMIT;
        loop {
            let mut show = Command::new(self.programs.join("ravelin"));
            let output = show.args(["show", "policy", "--json", "--control"]).arg(self.control()).output()?;
            if output.status.success() {
                return Ok(serde_json::from_slice(&output.stdout)?);
            }
            if Instant::now() > end {
                return Err(io::Error::other(String::from_utf8_lossy(&output.stdout).into_owned()));
            }
        }
    }

    /// Forgets what has come to the hosts.
    ///
    /// # Errors
    /// What Linux says.
    pub fn forget(&mut self) -> io::Result<()> {
        for tap in &mut self.taps {
            while tap.take()?.is_some() {}
            tap.lost()?;
        }
        Ok(())
    }

    /// Sends so many frames of an attack from inside, and judges what came of them.
    ///
    /// # Errors
    /// They cannot be sent, or the gateway passes nothing any more.
    pub fn attack(&mut self, attack: &Attack, frames: u64) -> io::Result<AttackResult> {
        self.attack_by(&self.link(), attack, frames)
    }

    /// The same by a link of this name.
    pub(crate) fn attack_by(&mut self, link: &str, attack: &Attack, frames: u64) -> io::Result<AttackResult> {
        self.forget()?;
        self.ends += 1;
        let (count, seed) = (frames.to_string(), self.ends.to_string());
        let (said, mut violations, _) = self.inside(&["send", link, attack.name, &count, &seed], None)?;
        let sent: u64 = said.trim().parse().map_err(|_| io::Error::other(said))?;
        violations += self.settle()?;
        Ok(AttackResult { name: attack.name.to_owned(), tier: self.tier(), frames: sent, violations })
    }

    /// Has a machine that shares its memory do something, some times, and judges what came of it.
    ///
    /// # Errors
    /// The gateway passes nothing any more, or no other machine takes the place of this one.
    pub fn attack_by_rings(&mut self, attack: &RingAttack) -> io::Result<AttackResult> {
        self.forget()?;
        let mut violations = 0;
        for _ in 0..TIMES {
            self.ends += 1;
            violations += self.inside(&["rings", &self.link(), attack.name, &self.ends.to_string()], None)?.1;
            violations += self.settle()?;
        }
        Ok(AttackResult::without_frames(attack.name, self.tier(), violations))
    }

    /// The name of the link inside.
    pub(crate) fn link(&self) -> String {
        match (self.link, &self.machine) {
            (_, Some(_)) => "eth0".to_owned(),
            (Some(_), None) => self.socket().display().to_string(),
            (None, None) => "services".to_owned(),
        }
    }

    /// Runs `redteam` inside with these words and judges what comes meanwhile; says what it prints, how many
    /// violations there were, and whether a datagram with this end came.
    pub(crate) fn inside(&mut self, words: &[&str], end: Option<&[u8]>) -> io::Result<(String, u64, bool)> {
        let (mut violations, mut seen) = (0, false);
        let mut look = |laboratory: &mut Laboratory| -> io::Result<()> {
            let (found, ended) = laboratory.judge(end)?;
            violations += found;
            seen |= ended;
            Ok(())
        };
        let said = if let Some(mut machine) = self.machine.take() {
            let command = format!("redteam {}", words.join(" "));
            let ended = machine.run(&command, || look(self));
            self.machine = Some(machine);
            ended?.said
        } else {
            let sender = self.sender.display().to_string();
            let mut child = self.contain(&[&[&*sender], words].concat()).stdout(Stdio::piped()).spawn()?;
            while child.try_wait()?.is_none() {
                look(self)?;
                thread::sleep(Duration::from_millis(1));
            }
            String::from_utf8_lossy(&child.wait_with_output()?.stdout).into_owned()
        };
        Ok((said, violations, seen))
    }

    /// Waits until a right datagram arrives that leaves the container after everything before, and judges
    /// what comes until then.
    pub(crate) fn settle(&mut self) -> io::Result<u64> {
        let (own, lan) = (self.scene.own(), self.scene.lan);
        let end = [END, self.ends.to_string().as_bytes()].concat();
        let frame = ethernet(lan.ethernet, own.ethernet, 0x0800, &udp4(own.ipv4, lan.ipv4, (53, 4001), &end));
        let digits: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        let (said, mut violations, mut seen) = self.inside(&["frame", &self.link(), &digits], Some(&end))?;
        if !said.trim().is_empty() {
            return Err(io::Error::other(said));
        }
        let limit = Instant::now() + LIMIT;
        loop {
            let (found, ended) = self.judge(Some(&end))?;
            violations += found;
            seen |= ended;
            if seen {
                let lost = self.taps[0].lost()? + self.taps[1].lost()?;
                return Ok(violations + self.judge(None)?.0 + lost);
            }
            if Instant::now() > limit {
                return Err(io::Error::other("a right datagram of the router does not arrive"));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Judges what has come, and says whether a datagram with this end is among it. Hosts go on talking.
    pub(crate) fn judge(&mut self, end: Option<&[u8]>) -> io::Result<(u64, bool)> {
        let (mut violations, mut ended) = (0, false);
        let Laboratory { taps: [lan, wan], scene, conversation, listener, .. } = self;
        conversation.go_on()?;
        while let Some(frame) = lan.take()? {
            if conversation.is_to(&scene.lan, frame) {
                conversation.arrived += 1;
                continue;
            }
            let marked = frame.windows(MARKER.len()).any(|window| window == MARKER);
            let is_wrong = marked || scene.router.violation(frame).is_some() || forbidden(frame).is_some();
            violations += u64::from(is_wrong);
            ended |= end.is_some_and(|end| frame.ends_with(end));
        }
        // The policy lets nothing of the router go there.
        while let Some(frame) = wan.take()? {
            match conversation.is_to(&scene.wan, frame) {
                true => conversation.arrived += 1,
                false => violations += 1,
            }
        }
        if let Some(listener) = listener {
            listener.listen(conversation)?;
        }
        Ok((violations, ended))
    }

    /// Tries an action inside.
    ///
    /// # Errors
    /// There is no core.
    pub fn act(&self, action: &MachineAction) -> io::Result<Output> {
        self.begin(action)?.wait_with_output()
    }

    /// Tries it where root inside has CAP_SYS_ADMIN.
    ///
    /// # Errors
    /// There is no core.
    pub fn act_with_sys_admin(&self, action: &MachineAction) -> io::Result<Output> {
        self.contain_with(&["--sys-admin"], &["sh", "-c", &self.script(action)?])
            .stdin(Stdio::null())
            .output()
    }

    /// Begins an action inside.
    ///
    /// # Errors
    /// There is no core.
    pub fn begin(&self, action: &MachineAction) -> io::Result<Child> {
        let mut command = self.contain(&["sh", "-c", &self.script(action)?]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    }

    /// Does the same as root outside.
    ///
    /// # Errors
    /// There is no core.
    pub fn act_outside(&self, action: &MachineAction) -> io::Result<Output> {
        let script = self.script(action)?;
        let mut command = self.gateway.command("sh", None);
        command.args(["-c", &script]).stdin(Stdio::null()).output()
    }

    fn script(&self, action: &MachineAction) -> io::Result<String> {
        let folder = self.folder.path().display();
        let core = self.core()?;
        Ok(format!(
            "CORE={core} CONTROL={folder}/control.sock CONTAINERS={folder}/containers REDTEAM={}\n{}",
            self.sender.display(),
            action.script
        ))
    }

    /// Tries something with the link of the virtual machine, and says whether it succeeded, and how many
    /// violations were seen.
    ///
    /// # Errors
    /// There is no machine, or the gateway passes nothing any more.
    pub fn act_in_machine(&mut self, script: &str) -> io::Result<(bool, u64)> {
        self.forget()?;
        self.ends += 1;
        let mut machine = self.machine.take().ok_or(io::ErrorKind::NotFound)?;
        let mut violations = 0;
        let ended = machine.run(script, || self.judge(None).map(|(found, _)| violations += found));
        self.machine = Some(machine);
        Ok((ended?.status == 0, violations + self.settle()?))
    }

    /// Says whether the virtual machine sees something of what hosts say to each other meanwhile.
    ///
    /// # Errors
    /// There is no machine, or hosts do not reach each other.
    pub fn overhear_in_machine(&mut self) -> io::Result<bool> {
        let mut machine = self.machine.take().ok_or(io::ErrorKind::NotFound)?;
        let wan = self.scene.wan.ipv4.to_string();
        let mut answered = 0;
        let ended = machine.run("timeout 5 redteam listen eth0", || {
            let pinged = self.lan.run("ping", &["-c", "1", "-W", "1", &wan], "")?;
            answered += u32::from(pinged.status.success());
            Ok(())
        });
        self.machine = Some(machine);
        if answered == 0 {
            return Err(io::Error::other("hosts do not reach each other"));
        }
        self.forget()?;
        Ok(ended?.status == 0)
    }
}

/// The children of a process that has one thread which starts them.
pub(crate) fn children(process: u32) -> io::Result<Vec<u32>> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children"))?;
    Ok(children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

impl Drop for Laboratory {
    fn drop(&mut self) {
        self.machine = None;
        // It ends well by a signal, and then lets go of its namespaces.
        if let Some(launch) = rustix::process::Pid::from_raw(self.launch.id() as i32) {
            let _ = rustix::process::kill_process(launch, rustix::process::Signal::TERM);
        }
        let _ = self.launch.wait();
    }
}
