// Run a Python program in Pyodide: CPython for WebAssembly, which has no sockets and no threads.
// Arguments: the program, and the folders of its modules, in Node's file system.
import { readFile } from "node:fs/promises";
import { loadPyodide } from "pyodide";

const [program, ...folders] = process.argv.slice(2);
const pyodide = await loadPyodide();
folders.forEach((folder, number) => {
  pyodide.FS.mkdir(`/given-${number}`);
  pyodide.FS.mount(pyodide.FS.filesystems.NODEFS, { root: folder }, `/given-${number}`);
  pyodide.runPython(`import sys; sys.path.insert(0, "/given-${number}")`);
});
pyodide.runPython(await readFile(program, "utf-8"));
