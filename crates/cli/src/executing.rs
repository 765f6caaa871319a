//! Chooses and loads the back end of a command: the interpreter, machine code, or a device; reports steps
//! that a device leaves to the host.

use crate::arguments::BackEndChoice;
use crate::arguments::schedule::ScheduleArguments;
use crate::failure::Failure;
use crate::render;
use exec::kernel::{Kernel, KernelOptions};
use exec::{Backend, BackendKind, LoadError};
use gpu::{DeviceError, Setup, Submission};
use ir::Program;
use ir::source::Sources;
use offload::Offload;
use offload::Offloaded;
use offload::device_queue::{DEVICE_BATCHES, Schedule};

/// What is to run programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Executing {
    back_end: BackEndChoice,
    schedule: Schedule,
    /// Whether somebody has asked for it.
    is_said: bool,
}

/// A program that is ready to run.
pub(crate) struct Loaded {
    /// It.
    pub(crate) backend: Box<dyn Backend>,
    /// What is run by the host though a device was asked for, a line each.
    pub(crate) notes: String,
}

impl Default for Executing {
    /// As machine code.
    fn default() -> Executing {
        Executing::new(BackEndChoice::Native, &ScheduleArguments::default())
    }
}

impl Executing {
    /// What the command line says.
    pub(crate) fn new(back_end: BackEndChoice, schedule: &ScheduleArguments) -> Executing {
        let is_said = schedule.is_said();
        Executing { back_end, schedule: schedule.schedule(back_end == BackEndChoice::Auto), is_said }
    }

    /// When packets are handed to a device, and whether they are.
    pub(crate) fn schedule(self) -> Schedule {
        self.schedule
    }

    /// Makes a program ready to run on `ports` ports. `here` loads it for the host alone.
    ///
    /// # Errors
    /// It cannot be loaded, or there is no such device.
    pub(crate) fn load(
        self,
        program: &Program,
        sources: &Sources,
        ports: u16,
        seed: u64,
        here: &dyn Fn(BackendKind) -> Result<Box<dyn Backend>, LoadError>,
    ) -> Result<Loaded, Failure> {
        let finding = |error: &dyn std::fmt::Display| Failure::Finding(format!("{}: {error}", program.name));
        let here = |back_end, notes| {
            here(back_end).map(|backend| Loaded { backend, notes }).map_err(|error| finding(&error))
        };
        match self.back_end {
            BackEndChoice::Interpreter => return here(BackendKind::Interpreter, self.idle_schedule()),
            BackEndChoice::Bytecode => return here(BackendKind::Bytecode, self.idle_schedule()),
            BackEndChoice::Native => return here(BackendKind::Native, self.idle_schedule()),
            BackEndChoice::Opencl | BackEndChoice::Cuda | BackEndChoice::Host | BackEndChoice::Auto => {}
        }
        let (cuda, opencl) = match self.back_end {
            BackEndChoice::Auto => {
                (gpu::cuda_devices().unwrap_or_default(), gpu::opencl_devices().unwrap_or_default())
            }
            _ => Default::default(),
        };
        let card = opencl.iter().find(|device| device.accelerator);
        if self.back_end == BackEndChoice::Auto && cuda.is_empty() && card.is_none() {
            return here(BackendKind::Native, self.idle_schedule());
        }
        let alone =
            |why: &dyn std::fmt::Display| format!("note: {} runs on the processor: {why}\n", program.name);
        let options = KernelOptions::default();
        let notes = match Kernel::new(program, ports, &options) {
            Ok(kernel) => render::kernel::refusals(&kernel.plan, program, sources),
            Err(error) => return here(BackendKind::Native, alone(&error)),
        };
        let depth = self.schedule.depth();
        let offload = || Offload::new(program, ports, seed, &options);
        let on_opencl = |device: &gpu::OpenClDevice| {
            self.open(Submission::Queued, &|setup| {
                Ok(Offloaded::on_opencl(offload()?, device, setup, depth)?)
            })
        };
        let on_cuda = |device: &gpu::CudaFound| {
            // What goes over, runs and comes back of different device batches can overlap.
            let streams = Submission::Streams(DEVICE_BATCHES);
            self.open(streams, &|setup| Ok(Offloaded::on_cuda(offload()?, device, setup, depth)?))
        };
        let tried = match self.back_end {
            BackEndChoice::Cuda => {
                gpu::cuda_devices().map_err(anyhow::Error::from).and_then(|found| on_cuda(&found[0]))
            }
            BackEndChoice::Host => offload()
                .map_err(anyhow::Error::from)
                .and_then(|offload| Ok(Offloaded::on_host(offload, program, ports, depth)?))
                .map(|offloaded| (offloaded, String::new())),
            BackEndChoice::Auto => {
                let mut said = String::new();
                let mut tried = cuda.first().map(on_cuda);
                if let Some(Err(error)) = &tried {
                    said = format!("note: {} does not run by CUDA: {error}\n", program.name);
                    tried = None;
                }
                match tried.or_else(|| card.map(on_opencl)) {
                    Some(Ok((offloaded, note))) => {
                        return Ok(Loaded { backend: Box::new(offloaded), notes: said + &note + &notes });
                    }
                    Some(Err(error)) => return here(BackendKind::Native, said + &alone(&error)),
                    None => return here(BackendKind::Native, said),
                }
            }
            _ => gpu::opencl_devices().map_err(anyhow::Error::from).and_then(|found| on_opencl(&found[0])),
        };
        let (offloaded, note) = tried.map_err(|error| finding(&error))?;
        Ok(Loaded { backend: Box::new(offloaded), notes: note + &notes })
    }

    /// What is to be said of a schedule for no device.
    fn idle_schedule(self) -> String {
        match self.is_said {
            true => {
                "note: --schedule is for devices, and there is none here; --back-end chooses one\n".to_owned()
            }
            false => String::new(),
        }
    }

    /// Opens a device in the way that suits the schedule: warps go to a kernel that keeps running, if the
    /// device can have one; all else, and warps where it cannot, are `launched`. With a note of what it
    /// cannot.
    fn open(
        self,
        launched: Submission,
        open: &dyn Fn(Setup) -> anyhow::Result<Offloaded>,
    ) -> anyhow::Result<(Offloaded, String)> {
        let with = |submission| open(Setup { submission, ..Setup::default() });
        let wanted = match self.schedule {
            Schedule::Hermes { .. } => Submission::Persistent,
            Schedule::Policy(_) => launched,
        };
        let lacks = |error: &anyhow::Error| {
            matches!(error.downcast_ref(), Some(DeviceError::Missing { .. } | DeviceError::Build { .. }))
        };
        match with(wanted) {
            Err(error) if wanted != launched && lacks(&error) => {
                Ok((with(launched)?, format!("note: a kernel is started for every warp: {error}\n")))
            }
            opened => Ok((opened?, String::new())),
        }
    }
}
