//! Compiles a program into one Cranelift module, with a function for each function of the IR.

use super::call::Code;
use super::early_lookups::{EarlyLookup, Part};
use super::host;
use super::translate::{Host, Shared, translate};
use crate::errors::LoadError;
use cranelift_codegen::ir::{AbiParam, Signature, types};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};
use ir::limits::LARGEST_FRAME;
use std::collections::HashMap;
use std::fmt::{Display, Write};

/// A program's code, and the bytes of stack that each of its functions needs.
pub(super) struct Compilation {
    pub(super) code: Code,
    pub(super) frames: Vec<(String, u32)>,
}

/// The code of a program and, if wanted, its listing: for every function Cranelift's IR and the machine's
/// instructions.
///
/// If the packet function has early lookups, it is compiled a second time, in parts.
pub(super) fn compile(
    shared: &Shared<'_>,
    lookups: &[EarlyLookup],
    listing: Option<&mut String>,
) -> Result<Compilation, LoadError> {
    let mut module = module()?;
    let mut frames = Vec::new();
    let declared = declare_host(&mut module)?;
    let program = shared.program;
    let mut functions: Vec<FuncId> = Vec::with_capacity(program.functions.len());
    let mut listing = listing;
    let mut context = module.make_context();
    let mut builder = FunctionBuilderContext::new();
    context.set_disasm(listing.is_some());
    let whole = (0..program.functions.len()).map(|index| (index, Part::Whole));
    let before = (!lookups.is_empty()).then_some((0, Part::Before(lookups)));
    let behind = lookups.iter().map(|lookup| (0, Part::After(lookup)));
    for (number, (index, part)) in whole.chain(before).chain(behind).enumerate() {
        let function = &program.functions[index];
        let fail = |cause: &dyn Display| failed(&function.name, cause);
        context.func.signature = entry(&module);
        // Names in a program need not differ from those of host functions, so the number tells them apart.
        let name = format!("{number} {}", function.name);
        let id = module
            .declare_function(&name, Linkage::Local, &context.func.signature)
            .map_err(|cause| fail(&cause))?;
        let host = Host { module: &mut module, declared: &declared, used: HashMap::new() };
        translate(shared, index, part, host, &mut context.func, &mut builder);
        if let Some(text) = listing.as_deref_mut() {
            let _ = writeln!(text, "; {}\n{}", function.name, context.func.display());
        }
        module.define_function(id, &mut context).map_err(|cause| fail(&format!("{cause:?}")))?;
        let layout = context.compiled_code().and_then(|code| code.buffer.frame_layout());
        let bytes = layout.map_or(0, |layout| layout.frame_to_fp_offset);
        if bytes > LARGEST_FRAME {
            return Err(LoadError::Frame { function: function.name.clone(), bytes });
        }
        frames.push((function.name.clone(), bytes));
        if let Some(text) = listing.as_deref_mut() {
            let code = context.compiled_code().and_then(|code| code.vcode.as_deref());
            let _ = writeln!(text, "{}", code.unwrap_or_default());
        }
        module.clear_context(&mut context);
        context.set_disasm(listing.is_some());
        functions.push(id);
    }
    module.finalize_definitions().map_err(|cause| failed("the program", &cause))?;
    let addresses: Vec<*const u8> = functions.iter().map(|id| module.get_finalized_function(*id)).collect();
    Ok(Compilation { code: Code::new(module, &addresses, program.functions.len()), frames })
}

/// An empty module for this machine with the host functions' addresses.
fn module() -> Result<JITModule, LoadError> {
    if cfg!(target_endian = "big") {
        return Err(LoadError::Machine("it stores the most significant byte first".to_string()));
    }
    let mut flags = settings::builder();
    let wanted = [
        ("opt_level", "speed"),
        ("use_colocated_libcalls", "false"),
        ("is_pic", "false"),
        ("unwind_info", "false"),
        // A function with a frame larger than a page touches its pages one by one. So an overflow hits the
        // guard page and ends the process, and cannot reach the memory beyond it.
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
        ("probestack_size_log2", "12"),
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
    ];
    for (name, value) in wanted {
        flags.set(name, value).map_err(|cause| LoadError::Machine(cause.to_string()))?;
    }
    let machine = cranelift_native::builder().map_err(|cause| LoadError::Machine(cause.to_string()))?;
    let isa =
        machine.finish(settings::Flags::new(flags)).map_err(|cause| LoadError::Machine(cause.to_string()))?;
    let mut builder = JITBuilder::with_isa(isa, default_libcall_names());
    builder.symbols(host::all().iter().map(|function| (function.name, function.address)));
    Ok(JITModule::new(builder))
}

/// The signature of every compiled function.
fn entry(module: &JITModule) -> Signature {
    let mut signature = module.make_signature();
    signature.params.extend([AbiParam::new(types::I64); 4]);
    signature.returns.push(AbiParam::new(types::I64));
    signature
}

/// Declares every host function, by its name.
fn declare_host(module: &mut JITModule) -> Result<HashMap<&'static str, FuncId>, LoadError> {
    let mut declared = HashMap::new();
    for host::Declaration { name, taken, given, .. } in host::all() {
        let mut signature = module.make_signature();
        signature.params.extend(std::iter::repeat_n(AbiParam::new(types::I64), taken));
        signature.returns.extend(std::iter::repeat_n(AbiParam::new(types::I64), given));
        let id = module
            .declare_function(name, Linkage::Import, &signature)
            .map_err(|cause| failed(name, &cause))?;
        declared.insert(name, id);
    }
    Ok(declared)
}

fn failed(function: &str, cause: &dyn Display) -> LoadError {
    LoadError::Compile { function: function.to_string(), cause: cause.to_string() }
}
