// dialogs: what opens over the panes, in one script that is loaded with the first of them.
export { mountDownloads } from "./download";
export { openHelp } from "./help";
export { ShareDialog } from "./sharedialog";
