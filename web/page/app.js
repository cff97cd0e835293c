// app: starts the script of the page.
import {showCompare} from '/compare.js';
import {showList} from '/list.js';
import {showQueue} from '/queue.js';
import {showRun} from '/run.js';

const pages = {compare: showCompare, list: () => { showList(); showQueue(); }, run: showRun};
pages[document.body.dataset.page]();
